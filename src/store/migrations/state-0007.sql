-- OAuth access tokens, by which gateways admit.
select 1;
