/** Gives a token another name, or less: whatever is filled in narrows it, at once on every gateway. */
import { useState } from 'preact/hooks'
import { api, type Propagation, type TokenRecord } from '../../api/routes.ts'
import { TextField } from '../../parts/forms/field.tsx'
import { Dialog, useAction } from '../../parts/frame/dialog.tsx'
import { showToast } from '../../parts/frame/toast.tsx'
import { ErrorNote } from '../../parts/loaded.tsx'
import { faultOf, NarrowingFields, narrowingBody, useNarrowing } from './narrowing-fields.tsx'
import { Done, PropagationNote } from './token-end.tsx'

export function ChangeDialog({ token, close }: { token: TokenRecord; close(): void }) {
  const [name, setName] = useState(token.name)
  const [fields, setFields] = useNarrowing()
  const [reached, setReached] = useState<Propagation | null>(null)
  const narrower = narrowingBody(fields)
  const { busy, refusal, form } = useAction(
    () =>
      api('PATCH /v1/tokens/{id}', {
        params: { id: token.id },
        body: { ...narrower, ...(name === token.name ? {} : { name }) },
        ifMatch: token.version,
      }),
    ({ propagation }) => {
      if (Object.keys(narrower).length > 0) return setReached(propagation)
      showToast('Renamed')
      close()
    },
  )
  if (reached !== null) {
    return (
      <Done title="Narrowed" close={close}>
        <PropagationNote propagation={reached} ends={false} />
      </Done>
    )
  }
  return (
    <Dialog title={`Change ${token.name}`} stays={busy} close={close}>
      <form class="form" {...form}>
        <p>A token may be renamed and given less, never more. Leave a field empty to leave its limit as it is.</p>
        <TextField label="Name" value={name} set={setName} required fault={faultOf(refusal, 'name')} />
        <NarrowingFields token={token} holder="The token" fields={fields} set={setFields} refusal={refusal} />
        {refusal !== null && <ErrorNote refusal={refusal} />}
        <div class="row end">
          <button type="button" disabled={busy} onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  )
}
