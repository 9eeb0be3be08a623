"""Reports for people: pictures of shardings (``picture``) and tables of collectives (``collectives``)."""
