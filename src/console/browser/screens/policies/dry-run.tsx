/** What the chain says of a request before and after a change, and what a policy would have said to recorded ones. */
import { useState } from 'preact/hooks'
import { api, type Finding, type PolicyRecord, type Trial } from '../../api/routes.ts'
import { triedFamilies } from '../../families.ts'
import { humanize, milliseconds } from '../../formats.ts'
import { SelectField, TextArea } from '../../parts/forms/field.tsx'
import type { JsonObject } from '../../parts/forms/schema-form.tsx'
import { useAction } from '../../parts/frame/dialog.tsx'
import { ErrorNote } from '../../parts/loaded.tsx'
import { VerdictBadge } from '../../parts/verdict.tsx'
import { findingWords } from '../finding-words.ts'
import { bodyOf } from './policy-body.ts'
import { Recorded } from './recorded.tsx'
import { stageLabel } from './stage-words.ts'

const sample = JSON.stringify(
  { model: 'simulator/echo', messages: [{ role: 'user', content: 'Write to ann@example.com about the transfer' }] },
  null,
  2,
)

const families = triedFamilies.map((name) => [name, humanize(name)] as const)

interface Props {
  record: PolicyRecord | null
  body: JsonObject
  chain: readonly PolicyRecord[]
}

/** The chain as it would be tried, with this policy as it is written now in its place. */
function chains({ record, body, chain }: Props): { before: JsonObject[]; after: JsonObject[] } {
  const enabled = (list: readonly JsonObject[]) =>
    list.filter(({ enabled: on }) => on !== false).map(({ order: _order, ...rest }) => rest)
  const before = chain.map(bodyOf)
  const after = record === null ? [...before, body] : chain.map((one) => (one.id === record.id ? body : bodyOf(one)))
  return { before: enabled(before), after: enabled(after) }
}

async function trial(policies: JsonObject[], given: { request: unknown; response: unknown; family: string }) {
  if (policies.length === 0) return null
  const { request, response, family } = given
  return await api('POST /v1/policies/test', {
    body: { policies, request, family, ...(response === undefined ? {} : { response }) },
  })
}

const parsed = (text: string, what: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's humanize name places that nobody sees in the field.
    throw new Error(`The ${what} is not JSON`)
  }
}

export function DryRun(props: Props) {
  const [request, setRequest] = useState(sample)
  const [response, setResponse] = useState('')
  const [family, setFamily] = useState('chat')
  const [said, setSaid] = useState<{ before: Trial | null; after: Trial | null } | null>(null)
  const { run, busy, refusal } = useAction(async () => {
    const given = {
      request: parsed(request, 'request'),
      response: response.trim() === '' ? undefined : parsed(response, 'answer'),
      family,
    }
    const { before, after } = chains(props)
    const [was, would] = await Promise.all([trial(before, given), trial(after, given)])
    return { before: was, after: would }
  }, setSaid)
  return (
    <section class="card stack" aria-label="Dry run">
      <h2>Dry run</h2>
      <p class="quiet">
        The result of the whole chain for a request, before and with the changes in the form. Nothing is sent or stored.
      </p>
      <SelectField label="Language" value={family} set={setFamily} options={families} />
      <TextArea label="Request" value={request} set={setRequest} rows={7} mono />
      <TextArea label="Answer" hint="For the answer stages" value={response} set={setResponse} rows={2} mono />
      <div class="row">
        <button type="button" disabled={busy} onClick={run}>
          {busy ? 'Trying…' : 'Try'}
        </button>
      </div>
      {refusal !== null && <ErrorNote refusal={refusal} />}
      {said !== null && (
        <div class="pair">
          <Said title="Before" trial={said.before} />
          <Said title="After" trial={said.after} />
        </div>
      )}
      <Recorded body={props.body} />
    </section>
  )
}

const Said = ({ title, trial: outcome }: { title: string; trial: Trial | null }) => (
  <div class="group" data-trial={title.toLowerCase()}>
    <div class="row between">
      <h3>{title}</h3>
      {outcome !== null && <VerdictBadge verdict={outcome.verdict} />}
    </div>
    {outcome === null || outcome.findings.length === 0 ? (
      <p class="quiet">No policy applies to this request.</p>
    ) : (
      <ul class="stack close">
        {outcome.findings.map((finding) => (
          <FoundBy key={`${finding.policy_id} ${finding.name} ${finding.stage}`} finding={finding} />
        ))}
      </ul>
    )}
    {outcome !== null && <pre class="small">{JSON.stringify(outcome.response ?? outcome.request, null, 2)}</pre>}
  </div>
)

const FoundBy = ({ finding }: { finding: Finding }) => (
  <li>
    <div class="row between">
      <span class="wrap">{finding.name}</span>
      <VerdictBadge verdict={finding.verdict} />
    </div>
    <span class="small quiet">
      {stageLabel(finding.stage)} · {milliseconds(finding.latency_ms)}
      {finding.mode === 'monitor' && ' · not applied'}
      {finding.targets.length > 0 && ` · ${findingWords(finding.targets)}`}
    </span>
  </li>
)
