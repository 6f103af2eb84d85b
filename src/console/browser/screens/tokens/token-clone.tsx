/** A clone may only shrink: each field shows what the source has, and what is left as it is is inherited. */
import { useState } from 'preact/hooks'
import { href } from '../../address.ts'
import { api, type TokenRecord } from '../../api/routes.ts'
import { RequiredNote, TextField } from '../../parts/forms/field.tsx'
import { Dialog, useAction } from '../../parts/frame/dialog.tsx'
import { ErrorNote } from '../../parts/loaded.tsx'
import { askForSecret } from '../../parts/secret.tsx'
import { faultOf, NarrowingFields, narrowingBody, useNarrowing } from './narrowing-fields.tsx'
import { type NewToken, SecretDialog } from './token-secret.tsx'

export function CloneDialog({ token, close }: { token: TokenRecord; close(): void }) {
  const [name, setName] = useState(`${token.name} clone`)
  const [fields, setFields] = useNarrowing()
  const [reason, setReason] = useState('')
  const [made, setMade] = useState<NewToken | null>(null)
  const { busy, refusal, form } = useAction(
    () =>
      askForSecret(() =>
        api('POST /v1/tokens/{id}/clone', {
          params: { id: token.id },
          body: {
            name,
            ...narrowingBody(fields),
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
  return (
    <Dialog title={`Clone ${token.name}`} stays={busy} close={close}>
      <form class="form" {...form}>
        <p>
          A clone has the same limits or lower ones, and its use also counts for its source. Leave a field empty to
          inherit the limit of the source.
        </p>
        <RequiredNote />
        <TextField label="Name" value={name} set={setName} required fault={faultOf(refusal, 'name')} />
        <NarrowingFields token={token} holder="The source" fields={fields} set={setFields} refusal={refusal} />
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
