/** The captured text of a request with what was taken out of it marked, beside what the policies found. */
import type { Event } from '../../../api/routes.ts'
import { humanize } from '../../../formats.ts'
import { showInvisible, userText } from '../../../parts/user-text.tsx'
import { VerdictBadge } from '../../../parts/verdict.tsx'
import { hasPermission } from '../../../session.ts'
import { findingSentence } from '../../finding-words.ts'
import { knownName } from '../../record-name.tsx'
import { policyResults } from './event-details.ts'
import { whyNoText } from './why-no-text.ts'

/** What stands in place of a finding: `[EMAIL]`. */
const label = /(\[[A-Z][A-Z0-9_]*\])/

export function CapturedText({ outcome }: { outcome: Event }) {
  const { prompt_redacted: text } = outcome
  if (text === undefined) return <NoText outcome={outcome} />
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
                  <li key={target}>{userText(findingSentence([target]))}</li>
                ))}
              </ul>
            </div>
          ))}
        </div>
      </div>
      {stoppedAnswer(outcome) && <StoppedAnswer />}
      <p class="small quiet">
        Marks in brackets stand for what was taken out before the text was stored: findings of policies, personal data
        and secrets.
      </p>
    </section>
  )
}

/** Whether a policy stopped the answer. */
const stoppedAnswer = (outcome: Event): boolean =>
  policyResults(outcome).some(
    ({ stage, verdict, mode }) => stage !== 'pre_request' && mode !== 'monitor' && stopping.has(verdict),
  )
const stopping: ReadonlySet<string> = new Set(['block', 'deny', 'escalate'])

const StoppedAnswer = () => (
  <p class="small quiet">
    A policy stopped the answer. Answers are never kept here.
    {hasPermission('escalations:read') &&
      ' A policy with capture_escalated shows an answer that waits for a person in Escalations.'}
  </p>
)

/** Why the text is not there. */
const NoText = ({ outcome }: { outcome: Event }) => (
  <section class="card stack">
    <h2>The text of the request</h2>
    <p class="quiet">It was not kept. {whyNoText(outcome)}</p>
    {stoppedAnswer(outcome) && <StoppedAnswer />}
  </section>
)
