/** What doctor found when it last looked by itself; nothing where all is well. */
import { api } from '../../api/routes.ts'
import { number } from '../../formats.ts'
import { ErrorNote, useLoaded } from '../../parts/loaded.tsx'
import { Time } from '../../parts/small.tsx'

const shown = 6

export function Findings() {
  const found = useLoaded('findings', (signal) => api('GET /v1/findings', { signal }), { everyMs: 60_000 })
  const findings = found.value?.findings ?? []
  if (found.refusal !== null) return <ErrorNote refusal={found.refusal} retry={found.reload} />
  if (findings.length === 0) return null
  const level = findings.some(({ level }) => level === 'fail') ? 'danger' : 'warn'
  return (
    <section class={`note ${level} stack close`} aria-label="Doctor">
      <ul>
        {findings.slice(0, shown).map(({ check, what, todo, since }) => (
          <li key={`${check} ${what}`}>
            {what}. {todo}{' '}
            <span class="quiet">
              (since <Time at={since} />)
            </span>
          </li>
        ))}
      </ul>
      {findings.length > shown && <p class="small">And {number(findings.length - shown)} more: gatehouse doctor.</p>}
    </section>
  )
}
