-- Lists and counts of tokens. What has ended is rare or old among many: an index of its own finds it without a walk.
create index tokens_revoked on tokens (id) where revoked_at is not null;
create index tokens_rotated on tokens (id, rotated_at) where rotated_at is not null and revoked_at is null;
create index tokens_expiring on tokens (id, expires_at, rotated_at) where expires_at is not null and revoked_at is null;
-- Pages of one team, gateway or user in order, with no sorting.
drop index tokens_team;
drop index tokens_gateway;
create index tokens_team on tokens (team_id, id);
create index tokens_gateway on tokens (gateway_id, id);
create index tokens_user on tokens (user_id, id);

-- How many tokens there are by what does not change with time; kept by the triggers below. No team is ''.
create table token_counts (
  purpose text not null,
  key_class text not null,
  team_id text not null,
  count integer not null,
  primary key (purpose, key_class, team_id)
);
insert into token_counts select purpose, key_class, coalesce(team_id, ''), count(*) from tokens group by 1, 2, 3;

create trigger tokens_counted after insert on tokens begin
  insert into token_counts values (new.purpose, new.key_class, coalesce(new.team_id, ''), 1)
  on conflict do update set count = count + 1;
end;
create trigger tokens_uncounted after delete on tokens begin
  update token_counts set count = count - 1
  where purpose = old.purpose and key_class = old.key_class and team_id = coalesce(old.team_id, '');
end;
create trigger tokens_recounted after update of purpose, key_class, team_id on tokens begin
  update token_counts set count = count - 1
  where purpose = old.purpose and key_class = old.key_class and team_id = coalesce(old.team_id, '');
  insert into token_counts values (new.purpose, new.key_class, coalesce(new.team_id, ''), 1)
  on conflict do update set count = count + 1;
end;
