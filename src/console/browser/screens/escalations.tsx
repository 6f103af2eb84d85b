/** The inbox of requests that wait for a person; j and k move, a and b decide, c takes one up. */
import { useMemo, useRef, useState } from 'preact/hooks'
import { href, queryValue, setQuery } from '../address.ts'
import { api, type Escalation } from '../api/routes.ts'
import { ago, fullTime, words } from '../formats.ts'
import { Dialog, useAction } from '../parts/dialog.tsx'
import { SelectField, TextArea } from '../parts/field.tsx'
import { Filters } from '../parts/filters.tsx'
import { Head } from '../parts/frame.tsx'
import { Icon, type IconName } from '../parts/icon.tsx'
import { type Keys, useKeys } from '../parts/keys.tsx'
import { Fault, useLoaded } from '../parts/loaded.tsx'
import { Said } from '../parts/said.tsx'
import { Command, Facts, Id, Time } from '../parts/small.tsx'
import { Empty, TableCard } from '../parts/table.tsx'
import { say } from '../parts/toast.tsx'
import { isCaller, may } from '../session.ts'

type Decision = 'allow' | 'block'

export function Escalations() {
  const status = queryValue('status') ?? 'queued'
  const query = { status: status === 'every' ? null : status, cursor: queryValue('cursor'), limit: 50 }
  const found = useLoaded(JSON.stringify(query), (signal) => api('GET /v1/escalations', { query, signal }), {
    everyMs: 10_000,
  })
  /** The request that was shown as its decision was begun: it stays the one, whatever comes to the list meanwhile. */
  const [deciding, setDeciding] = useState<{ escalation: Escalation; decision: Decision } | null>(null)
  const list = found.value?.escalations ?? []
  /** The newest comes first in the list, but does not take the place of the one that somebody reads. */
  const shown = useRef<string | null>(null)
  const listed = (wanted: string | null) => list.find(({ id }) => id === wanted)
  const chosen = listed(queryValue('id')) ?? listed(shown.current) ?? list[0]
  shown.current = chosen?.id ?? null
  const move = (by: number) => {
    const next = list[Math.max(0, list.findIndex(({ id }) => id === chosen?.id) + by)]
    if (next !== undefined) setQuery({ id: next.id }, { replace: true, keepPage: true })
  }
  const open = chosen !== undefined && isOpen(chosen) && may('escalations:resolve')
  const decide = (decision: Decision): void => {
    if (open) setDeciding({ escalation: chosen, decision })
  }
  const taking = chosen?.status !== 'claimed'
  const take = useAction(
    async () => {
      if (chosen === undefined) return
      const route = taking ? 'POST /v1/escalations/{id}/claim' : 'POST /v1/escalations/{id}/unclaim'
      await api(route, { params: { id: chosen.id } })
    },
    () => {
      say(taking ? 'It is yours now' : 'It is back in the queue')
      found.reload()
    },
  )
  useKeys(
    useMemo(
      (): Keys => ({
        j: { does: 'Next', run: () => move(1) },
        k: { does: 'Previous', run: () => move(-1) },
        a: { does: 'Allow', run: () => decide('allow') },
        b: { does: 'Block', run: () => decide('block') },
        c: { does: 'Claim, or put back', run: () => open && take.run() },
      }),
      [chosen, open, list],
    ),
  )
  return (
    <>
      <Head title="Escalations">
        <span class="small quiet keys">
          <kbd>j</kbd> <kbd>k</kbd> move · <kbd>a</kbd> allow · <kbd>b</kbd> block
        </span>
      </Head>
      <Filters
        filters={[
          {
            name: 'status',
            label: 'Status',
            usual: 'queued',
            options: ['queued', 'claimed', 'resolved', 'expired', ['every', 'Every']],
          },
        ]}
      />
      {found.refusal !== null && <Fault refusal={found.refusal} retry={found.reload} />}
      <div class="inbox">
        <TableCard
          label="Escalations"
          rows={found.value === undefined && found.refusal !== null ? null : found.value?.escalations}
          next={found.value?.next_cursor}
          keyOf={({ id }) => id}
          linkOf={({ id }) => href('/escalations', { id, status: queryValue('status'), cursor: queryValue('cursor') })}
          selected={chosen?.id ?? null}
          columns={[
            { title: 'Reason', cell: ({ reason_code }) => reason_code },
            { title: 'Token', cell: ({ token }) => token.name ?? token.id, from: 'wide' },
            { title: 'Status', cell: (one) => <State escalation={one} />, nowrap: true },
            { title: 'Waits since', cell: ({ queued_at }) => <Time at={queued_at} />, nowrap: true },
          ]}
          empty={<NothingWaits title={status === 'queued' ? 'Nothing waits' : 'Nothing here'} />}
        />
        {chosen !== undefined && (
          <section class="card stack pane" aria-label="The request">
            <Request escalation={chosen} />
            {open && (
              <div class="row">
                <button type="button" class="primary" onClick={() => decide('allow')}>
                  Allow
                </button>
                <button type="button" class="danger" onClick={() => decide('block')}>
                  Block
                </button>
                <button type="button" disabled={take.busy} onClick={take.run}>
                  {taking ? 'Claim' : 'Put back'}
                </button>
              </div>
            )}
            {take.refusal !== null && <Fault refusal={take.refusal} />}
          </section>
        )}
      </div>
      {deciding !== null && (
        <Decide
          {...deciding}
          close={() => setDeciding(null)}
          done={() => {
            setDeciding(null)
            found.reload()
          }}
        />
      )}
    </>
  )
}

const isOpen = ({ status }: Escalation): boolean => status === 'queued' || status === 'claimed'

const stateLooks: Readonly<Record<string, readonly [tone: string, icon: IconName]>> = {
  queued: ['escalate', 'escalate'],
  claimed: ['pending', 'people'],
  expired: ['error', 'pending'],
  allow: ['allow', 'allow'],
  block: ['block', 'block'],
}

function State({ escalation: { status, resolution } }: { escalation: Escalation }) {
  const word = resolution === null ? status : resolution
  const [tone, icon] = stateLooks[word] ?? ['error', 'error']
  return (
    <span class="badge" data-verdict={tone}>
      <Icon name={icon} />
      {resolution === 'allow' ? 'Allowed' : resolution === 'block' ? 'Blocked' : words(status)}
    </span>
  )
}

function Request({ escalation }: { escalation: Escalation }) {
  const { request, token, policy, attempts, grant, note, claimed_by } = escalation
  return (
    <>
      <div class="row between">
        <h2 class="wrap">{escalation.reason_code}</h2>
        <State escalation={escalation} />
      </div>
      <p>
        The policy <a href={href(`/policies/${policy.id}`)}>{policy.name ?? policy.id}</a> stopped a request of the
        token <a href={href(`/tokens/${token.id}`)}>{token.name ?? token.id}</a> {ago(escalation.queued_at)}
        {request.targets.length > 0 && <>, for {request.targets.join(', ')}</>}.
        {attempts > 1 && ` It came ${attempts} times.`}
      </p>
      <Facts
        facts={[
          ['Route', request.route],
          ['Model', request.model ?? 'None'],
          request.request_id === null ? null : ['Request id', <Id key="request" id={request.request_id} />],
          ['Digest', <Id key="digest" id={request.digest} what="Digest" short />],
          isOpen(escalation) ? ['Waits until', fullTime(escalation.expires_at)] : null,
          claimed_by === null
            ? null
            : ['Claimed by', isCaller(claimed_by) ? 'You' : <code key="claimed">{claimed_by}</code>],
          escalation.resolved_by === null
            ? null
            : [
                'Decided by',
                isCaller(escalation.resolved_by) ? 'You' : <code key="resolved">{escalation.resolved_by}</code>,
              ],
          escalation.resolved_at === null ? null : ['Decided', <Time key="at" at={escalation.resolved_at} />],
          note === null ? null : ['Note', note],
          grant === null ? null : ['May be sent once until', fullTime(grant.expires_at)],
        ]}
      />
      <Captured text={capturedText(request)} />
    </>
  )
}

/** The text of the request where the gateway captures it, without personal data and secrets. */
const capturedText = (request: object): string | null =>
  'prompt_redacted' in request && typeof request.prompt_redacted === 'string' ? request.prompt_redacted : null

const Captured = ({ text }: { text: string | null }) => (
  <>
    {text !== null && <pre class="card">{text}</pre>}
    <p class="small quiet">
      {text === null
        ? 'The text of the request was not captured; the digest is the same for the same request.'
        : 'Personal data and secrets were taken out before this was kept.'}{' '}
      A decision sends nothing by itself.
    </p>
  </>
)

interface DecideProps {
  escalation: Escalation
  decision: Decision
  close(): void
  done(): void
}

function Decide({ escalation, decision, close, done }: DecideProps) {
  const [note, setNote] = useState('')
  const [grant, setGrant] = useState('900')
  const { run, busy, refusal } = useAction(
    () =>
      api('POST /v1/escalations/{id}/resolve', {
        params: { id: escalation.id },
        body: {
          resolution: decision,
          ...(note.trim() === '' ? {} : { note: note.trim() }),
          ...(decision === 'allow' && grant !== '' ? { grant_once_seconds: Number(grant) } : {}),
        },
      }),
    () => {
      say(decision === 'allow' ? 'Allowed' : 'Blocked')
      done()
    },
  )
  return (
    <Dialog title={decision === 'allow' ? 'Allow this request' : 'Block this request'} close={close}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          run()
        }}
      >
        <p class="wrap">
          <Said>{escalation.reason_code}</Said>, asked with the token{' '}
          <Said>{escalation.token.name ?? escalation.token.id}</Said>
        </p>
        <TextArea label="Note" hint="Why, for the record" value={note} set={setNote} rows={2} />
        {decision === 'allow' && (
          <SelectField
            label="May it be sent once more?"
            hint="The same token may send exactly the same request, once. Nothing is sent by itself."
            value={grant}
            set={setGrant}
            options={[
              ['900', 'Yes, within 15 minutes'],
              ['3600', 'Yes, within an hour'],
              ['86400', 'Yes, within a day'],
              ['', 'No, only note the decision'],
            ]}
          />
        )}
        {refusal !== null && <Fault refusal={refusal} />}
        <div class="row end">
          <button type="button" disabled={busy} onClick={close}>
            Cancel
          </button>
          <button type="submit" class={decision === 'allow' ? 'primary' : 'danger primary'} disabled={busy}>
            {decision === 'allow' ? 'Allow' : 'Block'}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

const NothingWaits = ({ title }: { title: string }) => (
  <Empty title={title}>
    <p>
      A request appears here when a policy of the kind escalate, or with the action escalate, stops it. For example:
    </p>
    <Command
      text={`policies:
  - name: transfers need a person
    kind: escalate
    stages: [pre_request]
    when: request.tools.exists(t, t == "transfer")
    config: { reason_code: finance.transfer }`}
      what="Policy"
    />
  </Empty>
)
