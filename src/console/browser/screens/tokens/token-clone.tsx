/** A clone may only shrink: each field shows what the source has, and what is left as it is is inherited. */
import { useState } from 'preact/hooks'
import { href } from '../../address.ts'
import { api, type TokenRecord } from '../../api/routes.ts'
import { fullTime, money, number } from '../../formats.ts'
import { linesOf } from '../../lines.ts'
import { Dialog, useAction } from '../../parts/dialog.tsx'
import { TextArea, TextField } from '../../parts/field.tsx'
import { ErrorNote } from '../../parts/loaded.tsx'
import { askForSecret } from '../../parts/secret.tsx'
import { type NewToken, SecretDialog } from './token-secret.tsx'

const has = (what: string | null): string => (what === null ? 'The source has no limit' : `The source has ${what}`)

export function CloneDialog({ token, close }: { token: TokenRecord; close(): void }) {
  const [name, setName] = useState(`${token.name} clone`)
  const [models, setModels] = useState('')
  const [budget, setBudget] = useState('')
  const [requests, setRequests] = useState('')
  const [expires, setExpires] = useState('')
  const [reason, setReason] = useState('')
  const [made, setMade] = useState<NewToken | null>(null)
  const { run, busy, refusal } = useAction(
    () =>
      askForSecret(() =>
        api('POST /v1/tokens/{id}/clone', {
          params: { id: token.id },
          body: {
            name,
            ...(models.trim() === '' ? {} : { bindings: { model_filter: linesOf(models) } }),
            ...(budget === '' ? {} : { max_budget: Number(budget) }),
            ...(requests === '' ? {} : { max_requests: Number(requests) }),
            ...(expires === '' ? {} : { expires_at: new Date(expires).toISOString() }),
            ...(reason.trim() === '' ? {} : { reason: reason.trim() }),
          },
        }),
      ),
    setMade,
  )
  if (made !== null) {
    const to = href(`/tokens/${made.id}`)
    return <SecretDialog title="The clone's secret" token={made} to={to} close={close} />
  }
  const { bindings, depletion, expires_at } = token
  const fault = (...params: string[]) =>
    refusal?.param != null && params.some((param) => refusal.param?.startsWith(param)) ? refusal.message : null
  return (
    <Dialog title={`Clone ${token.name}`} stays={busy} close={close}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          run()
        }}
      >
        <p>
          A clone has the same limits or lower ones, and its use also counts for its source. Leave a field empty to
          inherit the limit of the source.
        </p>
        <TextField label="Name" value={name} set={setName} required fault={fault('name')} />
        <TextArea
          label="Models (fewer)"
          hint={`${has(bindings.model_filter?.join(', ') ?? null)}. One per line; * stands for anything.`}
          value={models}
          set={setModels}
          rows={2}
          mono
          fault={fault('bindings.model_filter', 'model_filter')}
        />
        <div class="pair">
          <TextField
            label="Budget (USD, lower)"
            type="number"
            min={0}
            step="any"
            hint={has(depletion.max_budget === null ? null : money(depletion.max_budget))}
            value={budget}
            set={setBudget}
            fault={fault('max_budget')}
          />
          <TextField
            label="Requests (fewer)"
            type="number"
            min={1}
            hint={has(depletion.max_requests === null ? null : number(depletion.max_requests))}
            value={requests}
            set={setRequests}
            fault={fault('max_requests')}
          />
        </div>
        <TextField
          label="Expires (earlier)"
          type="datetime-local"
          hint={has(expires_at === null ? null : `until ${fullTime(expires_at)}`)}
          value={expires}
          set={setExpires}
          fault={fault('expires')}
        />
        <TextField label="Reason" hint="For the record" value={reason} set={setReason} />
        {refusal !== null && <ErrorNote refusal={refusal} />}
        <div class="row end">
          <button type="button" disabled={busy} onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy}>
            Clone
          </button>
        </div>
      </form>
    </Dialog>
  )
}
