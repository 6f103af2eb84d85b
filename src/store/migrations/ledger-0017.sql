-- What was refused of one model: of both alone there may be many, and none of both.
create index events_refused_model on events (model, verdict, position) where verdict <> 'allow' and model is not null;
