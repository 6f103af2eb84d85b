-- Signed heads of all chains, which every host thereby witnesses.
select 1;
