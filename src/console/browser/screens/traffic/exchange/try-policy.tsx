/** Tries a policy of today on the text of a recorded request. Nothing is sent or stored. */

import { useState } from 'preact/hooks'
import { api, type Event, type PolicyRecord, type Trial } from '../../../api/routes.ts'
import { humanize, milliseconds } from '../../../formats.ts'
import { SelectField, TextArea } from '../../../parts/forms/field.tsx'
import { Dialog, useAction } from '../../../parts/frame/dialog.tsx'
import { ErrorNote } from '../../../parts/loaded.tsx'
import { Table } from '../../../parts/table.tsx'
import { userText } from '../../../parts/user-text.tsx'
import { VerdictBadge } from '../../../parts/verdict.tsx'
import { findingSentence } from '../../finding-words.ts'
import { requestOf } from './curl.ts'
import { policyResults } from './event-details.ts'

interface Props {
  outcome: Event
  policies: readonly PolicyRecord[]
  close(): void
}

export function TryPolicy({ outcome, policies, close }: Props) {
  const decided = policyResults(outcome).findLast(({ verdict }) => verdict === outcome.verdict)?.policy_id
  const [policy, setPolicy] = useState(policies.find(({ id }) => id === decided)?.id ?? policies[0]?.id ?? '')
  const recorded = requestOf(outcome)
  const [request, setRequest] = useState(JSON.stringify(recorded?.body ?? {}, null, 2))
  const [said, setSaid] = useState<Trial | null>(null)
  const { run, busy, refusal } = useAction(
    () =>
      api('POST /v1/policies/test', {
        body: { policy_ids: [policy], request: JSON.parse(request), ...(recorded && { family: recorded.family }) },
      }),
    setSaid,
  )
  return (
    <Dialog title="Try a policy on this request" broad close={close}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          run()
        }}
      >
        <p class="quiet">The policy as it is now. Nothing is sent or stored.</p>
        <SelectField
          label="Policy"
          value={policy}
          set={setPolicy}
          options={policies.map(({ id, name }) => [id, name] as const)}
        />
        <TextArea
          label="Request"
          hint={
            outcome.prompt_redacted === undefined
              ? 'The text was not captured: write what is to be tried.'
              : 'The captured text: what was taken out of it stands in brackets.'
          }
          value={request}
          set={setRequest}
          rows={8}
          mono
        />
        {refusal !== null && <ErrorNote refusal={refusal} />}
        {said !== null && (
          <div class="stack close" role="status">
            <div class="row">
              <VerdictBadge verdict={said.verdict} />
              <code>{said.reason_code}</code>
            </div>
            <Table
              label="What the policy says"
              rows={said.findings}
              keyOf={({ policy_id, stage }) => `${policy_id} ${stage}`}
              columns={[
                { title: 'Stage', cell: ({ stage }) => humanize(stage) },
                { title: 'Verdict', cell: ({ verdict }) => <VerdictBadge verdict={verdict} /> },
                {
                  title: 'Finding',
                  cell: ({ targets }) => userText(findingSentence(targets) || '–'),
                },
                { title: 'Took', right: true, from: 'wide', cell: ({ latency_ms }) => milliseconds(latency_ms) },
              ]}
              empty={<p class="quiet">The policy does not apply to this request.</p>}
            />
          </div>
        )}
        <div class="row end">
          <button type="button" disabled={busy} onClick={close}>
            Close
          </button>
          <button type="submit" class="primary" disabled={busy || policy === ''}>
            Try
          </button>
        </div>
      </form>
    </Dialog>
  )
}
