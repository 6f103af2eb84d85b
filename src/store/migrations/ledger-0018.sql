-- What was refused of one token, or of one team: of each there may be many, and of both few.
create index events_refused_token on events (token_id, verdict, position) where verdict <> 'allow' and token_id is not null;
create index events_refused_team on events (team_id, verdict, position) where verdict <> 'allow';
