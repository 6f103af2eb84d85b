/** Where a new policy begins: from a ready one, or from a kind with an empty form. */
import { href } from '../../address.ts'
import type { JsonSchema } from '../../api/description.ts'
import { humanize } from '../../formats.ts'
import { startingPoints } from './starting-points.ts'

export const ChooseKind = ({ kinds }: { kinds: ReadonlyMap<string, JsonSchema> }) => (
  <>
    <section class="card stack" aria-label="Starting points">
      <h2>Starting points</h2>
      <ul class="cards">
        {startingPoints.map(({ name, about, body }) => (
          <li key={name}>
            <a href={href('/policies/new', { start: name })}>{body.name}</a>{' '}
            {body.mode === 'monitor' && <span class="tag">Monitor</span>}
            <p class="small quiet">{about}</p>
          </li>
        ))}
      </ul>
    </section>
    <section class="card stack" aria-label="Policy kind">
      <h2>Policy kind</h2>
      <ul class="cards">
        {[...kinds].map(([kind, { description }]) => (
          <li key={kind}>
            <a href={href('/policies/new', { kind })}>{humanize(kind)}</a>
            <p class="small quiet">{description}</p>
          </li>
        ))}
      </ul>
    </section>
  </>
)
