-- Fewer pages for each new token: most tokens are bound to no team, gateway or user.
drop index tokens_team;
drop index tokens_gateway;
drop index tokens_user;
create index tokens_team on tokens (team_id, id) where team_id is not null;
create index tokens_gateway on tokens (gateway_id, id) where gateway_id is not null;
create index tokens_user on tokens (user_id, id) where user_id is not null;
