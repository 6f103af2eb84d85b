/** What a request cost, by part where the price of its model tells. */
import { api, type Event } from '../../../api/routes.ts'
import { money, number } from '../../../formats.ts'
import { useLoaded } from '../../../parts/loaded.tsx'
import { Facts } from '../../../parts/small.tsx'
import { hasPermission } from '../../../session.ts'
import { costParts } from './cost-parts.ts'
import { detail, numberDetail } from './event-details.ts'

type Attributed = NonNullable<Event['event_cost_attribution']>

export function Cost({ outcome, cost }: { outcome: Event; cost: Attributed }) {
  const isCached = detail(outcome, 'cache') === 'hit'
  const priced = useLoaded(`price of ${cost.model}`, async (signal) =>
    isCached || cost.model === '' || !hasPermission('catalog:read')
      ? null
      : await api('GET /v1/catalog/models/{id}/price', { params: { id: cost.model }, signal }),
  )
  const parts = priced.value == null ? null : costParts(cost, priced.value)
  return (
    <>
      <Facts
        facts={[
          ['Cost', `${money(cost.cost)}${cost.estimated ? ', estimated' : ''}`],
          isCached ? ['Saved', money(numberDetail(outcome, 'cache_saved'))] : null,
          ['Provider', `${cost.provider}, ${cost.model}`],
          ...(parts === null ? countsOf(cost) : []),
          ...(parts ?? []).map(
            (part) =>
              [
                part.name,
                part.tokens === null ? money(part.cost) : `${money(part.cost)} for ${number(part.tokens)} tokens`,
              ] as const,
          ),
        ]}
      />
      {parts === null && priced.value != null && cost.cost !== null && cost.cost > 0 && (
        <p class="small quiet">
          The parts are unknown: the price of the model is not what it was, or not by token alone.
        </p>
      )}
    </>
  )
}

/** The counts, where the cost of each is not known. */
const countsOf = (cost: Attributed) => [
  ['Tokens', `${number(cost.input_tokens)} in, ${number(cost.output_tokens)} out`] as const,
  cost.cached_input_tokens === null ? null : (['Cached', number(cost.cached_input_tokens)] as const),
  cost.reasoning_tokens === null ? null : (['Reasoning', number(cost.reasoning_tokens)] as const),
]
