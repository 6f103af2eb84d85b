-- What the token system decides by.
select 1;
