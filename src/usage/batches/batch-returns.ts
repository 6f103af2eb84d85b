/**
 * What settled batches gave back (usage/batches/README.md), as SQL. A worker's counters only grow, so what comes back
 * of an amount that was settled cannot be taken off them: the ledger keeps it by account, and each sum over balances
 * takes it off.
 */

/** The name under which it stands among the workers of an account. No worker has such a name. */
const batchReturnsWorker = '*batches'

/**
 * In place of the table `lease_balances`: the balances of workers, and what batches gave back as one with negative
 * counters. So sums of what is granted and settled are those of what was used.
 */
export const everyBalance = balancesWhere('true')

/**
 * The same of the accounts whose names `list` has, a parameter with a JSON list. SQLite does not carry such a condition
 * into the two tables by itself, and reads all balances for each question.
 */
export const balancesOf = (list: string): string => balancesWhere(`account in (select value from json_each(${list}))`)

function balancesWhere(condition: string): string {
  return `(select account, worker, rounds, granted, returned, settled from lease_balances where ${condition}
    union all select account, '${batchReturnsWorker}', 0, -amount, 0, -amount from batch_returns where ${condition})`
}

/** An SQL expression: what came back to the account that the expression names. */
export const returnedTo = (account: string): string =>
  `coalesce((select amount from batch_returns where batch_returns.account = ${account}), 0)`
