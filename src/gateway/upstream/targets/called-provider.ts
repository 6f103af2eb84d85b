import type { Provider } from '../../../providers/provider.ts'
import type { Exchange, ResolvedModel } from '../../exchange.ts'

/** The provider of a path with the key that was chosen for the present call. */
export const calledProvider = ({ attempts }: Pick<Exchange, 'attempts'>, { provider }: ResolvedModel): Provider =>
  provider.keys?.[attempts.at(-1)?.key ?? 0] ?? provider
