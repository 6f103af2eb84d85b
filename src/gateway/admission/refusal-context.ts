/** What the error of a refused reservation says of the token and its limits. */
import type { GovernedToken } from '../../tokens/governed-token.ts'
import type { RefusalContext } from '../../usage/demands.ts'
import type { Gateway } from '../context.ts'
import { resourceName } from './resource-name.ts'

export const refusalContext = (
  { id, keyClass, accounts }: Pick<GovernedToken, 'id' | 'keyClass' | 'accounts'>,
  { worker, clock }: Gateway,
): RefusalContext => ({
  ...{ keyClass, accounts, limits: worker.view.limits, now: clock.now() },
  resource: resourceName(id, worker.status),
})
