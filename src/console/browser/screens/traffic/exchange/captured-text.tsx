/** The captured text of a request with what was taken out of it marked, beside what the policies found. */
import type { Event } from '../../../api/routes.ts'
import { humanize } from '../../../formats.ts'
import { showInvisible, userText } from '../../../parts/user-text.tsx'
import { VerdictBadge } from '../../../parts/verdict.tsx'
import { knownName } from '../../record-name.tsx'
import { policyResults } from './event-details.ts'

/** What stands in place of a finding: `[EMAIL]`. */
const label = /(\[[A-Z][A-Z0-9_]*\])/

export function CapturedText({ outcome }: { outcome: Event }) {
  const { prompt_redacted: text } = outcome
  if (text === undefined) return null
  const findings = policyResults(outcome).filter(({ targets, verdict }) => targets.length > 0 || verdict !== 'allow')
  return (
    <section class="card stack">
      <h2>The text of the request</h2>
      <div class="stack">
        <pre class="card captured">
          {text
            .split(label)
            .map((part, index) => (index % 2 === 1 ? <mark key={index}>{part}</mark> : showInvisible(part)))}
        </pre>
        <div class="stack close">
          {findings.length === 0 && <p class="quiet">No policy found anything in it.</p>}
          {findings.map((result) => (
            <div key={`${result.policy_id} ${result.stage}`}>
              <div class="row">
                <VerdictBadge verdict={result.verdict} />
                {userText(knownName(result.policy_id) ?? humanize(result.kind))}
              </div>
              <ul>
                {result.targets.map((target) => (
                  <li key={target}>
                    <code>{userText(target)}</code>
                  </li>
                ))}
              </ul>
            </div>
          ))}
        </div>
      </div>
      <p class="small quiet">
        Marks in brackets stand for what was taken out before the text was stored: findings of policies, personal data
        and secrets.
      </p>
    </section>
  )
}
