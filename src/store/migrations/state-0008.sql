-- What sidecars go by.
select 1;
