/** How a token ends: replaced, revoked, or revoked in an emergency; each says what will stop, and then what has. */
import { useState } from 'preact/hooks'
import { href } from '../../address.ts'
import { api, type Propagation, type TokenRecord } from '../../api/routes.ts'
import { countNoun, fullTime } from '../../formats.ts'
import { CheckField, SelectField, TextArea } from '../../parts/forms/field.tsx'
import { Confirm, Dialog, useAction } from '../../parts/frame/dialog.tsx'
import { ErrorNote } from '../../parts/loaded.tsx'
import { askForSecret } from '../../parts/secret.tsx'
import { type NewToken, SecretDialog } from './token-secret.tsx'

/** What was done is shown in place of the question. */
const showDone = (): void => undefined

interface Props {
  token: TokenRecord
  close(): void
}

/** How many gateways have heard of a change, and from when on none goes by what was before. */
export function PropagationNote({
  propagation: { connected, acknowledged, unreachable, effective_by },
  ends = true,
}: {
  propagation: Propagation
  /** Whether the token has ended; otherwise it was narrowed. */
  ends?: boolean
}) {
  const [none, after] = ends
    ? ['none accepts it any more', 'No gateway accepts it after']
    : ['all go by the change', 'No gateway goes by the former limits after']
  const all = acknowledged === connected && unreachable.length === 0
  return (
    <div class={`note ${all ? '' : 'warn'}`}>
      {all ? (
        <p>
          {connected === 0
            ? 'No gateway is connected.'
            : `${acknowledged} of ${countNoun(connected, 'gateway')} acknowledged: ${none}.`}
        </p>
      ) : (
        <p>
          {acknowledged} of {countNoun(connected, 'gateway')} acknowledged. {after}{' '}
          <strong>{fullTime(effective_by)}</strong>.
        </p>
      )}
      {unreachable.map(({ gateway_id, instance_id, until }) => (
        <p key={instance_id} class="small">
          Gateway <code>{gateway_id}</code> cannot be reached; it stops by {fullTime(until)} at the latest.
        </p>
      ))}
    </div>
  )
}

export const Done = ({
  title,
  close,
  children,
}: {
  title: string
  close(): void
  children: preact.ComponentChildren
}) => (
  <Dialog title={title} close={close}>
    {children}
    <div class="row end">
      <button type="button" class="primary" onClick={close}>
        Done
      </button>
    </div>
  </Dialog>
)

export function RevokeDialog({ token, close }: Props) {
  const [reached, setReached] = useState<Propagation | null>(null)
  if (reached !== null) {
    return (
      <Done title="Revoked" close={close}>
        <PropagationNote propagation={reached} />
      </Done>
    )
  }
  return (
    <Confirm
      title="Revoke this token"
      name={token.name}
      action="Revoke"
      close={close}
      done={showDone}
      work={async () => setReached((await api('DELETE /v1/tokens/{id}', { params: { id: token.id } })).propagation)}
    >
      <p>
        Every new request with it is refused with 401, on all gateways and here. A request that is already running may
        finish. This cannot be undone.
      </p>
    </Confirm>
  )
}

export function EmergencyDialog({ token, close }: Props) {
  const [explanation, setExplanation] = useState('')
  const [cut, setCut] = useState(false)
  const [done, setDone] = useState<{ propagation: Propagation; proof_event_id: string } | null>(null)
  if (done !== null) {
    return (
      <Done title="Revoked in emergency" close={close}>
        <PropagationNote propagation={done.propagation} />
        <p>
          The proof is event{' '}
          <a href={href(`/traffic/${done.proof_event_id}`)}>
            <code>{done.proof_event_id}</code>
          </a>
          . It names the token, never its secret.
        </p>
      </Done>
    )
  }
  return (
    <Confirm
      title="Revoke in an emergency"
      name={token.name}
      action="Revoke now"
      ready={explanation.trim() !== ''}
      close={close}
      done={showDone}
      work={async () =>
        setDone(
          await api('POST /v1/tokens/{id}/emergency-revoke', {
            params: { id: token.id },
            body: { explanation: explanation.trim(), revoke_active_sessions: cut },
          }),
        )
      }
    >
      <TextArea
        label="Reason"
        hint="Recorded in the audit trail. Do not enter the secret."
        value={explanation}
        set={setExplanation}
        required
        placeholder="The key was in a public repository"
      />
      <p>The token stops at once on every gateway, and an audit proof is recorded. This cannot be undone.</p>
      <CheckField
        label="Also end running requests"
        hint="Open requests and connections of the token are cut."
        value={cut}
        set={setCut}
      />
    </Confirm>
  )
}

const graces = [
  ['0', 'At once: the old secret stops now'],
  ['3600', 'After 1 hour'],
  ['43200', 'After 12 hours'],
  ['86400', 'After 24 hours'],
] as const

export function RotateDialog({ token, close }: Props) {
  const [grace, setGrace] = useState('0')
  const [made, setMade] = useState<(NewToken & { propagation: Propagation }) | null>(null)
  const { run, busy, refusal } = useAction(
    () =>
      askForSecret(() =>
        api('POST /v1/tokens/{id}/rotate', { params: { id: token.id }, body: { grace_period_seconds: Number(grace) } }),
      ),
    setMade,
  )
  if (made !== null) {
    return (
      <SecretDialog title="A new secret" token={made} close={close}>
        {grace === '0' && <PropagationNote propagation={made.propagation} />}
      </SecretDialog>
    )
  }
  return (
    <Dialog title={`Rotate ${token.name}`} stays={busy} close={close}>
      <p>
        A new token with the same profile and a new secret replaces it. Both share their limits: what is used stays
        used.
      </p>
      <SelectField label="When does the old secret stop?" value={grace} set={setGrace} options={graces} />
      {refusal !== null && <ErrorNote refusal={refusal} />}
      <div class="row end">
        <button type="button" disabled={busy} onClick={close}>
          Cancel
        </button>
        <button type="button" class="primary" disabled={busy} onClick={run}>
          Rotate
        </button>
      </div>
    </Dialog>
  )
}
