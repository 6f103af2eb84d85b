/** Gives a token another name, or less: whatever is filled in narrows it, at once on every gateway. */
import { useRef, useState } from 'preact/hooks'
import { api, type Propagation, type TokenRecord } from '../../api/routes.ts'
import { Conflict } from '../../parts/forms/conflict.tsx'
import { RequiredNote, TextField } from '../../parts/forms/field.tsx'
import { Dialog, useAction } from '../../parts/frame/dialog.tsx'
import { showToast } from '../../parts/frame/toast.tsx'
import {
  faultOf,
  NarrowingFields,
  narrowableFields,
  narrowingBody,
  noNarrowing,
  readableChanges,
  useNarrowing,
} from './narrowing-fields.tsx'
import { Done, PropagationNote } from './token-end.tsx'

export function ChangeDialog({ token, close }: { token: TokenRecord; close(): void }) {
  const [name, setName] = useState(token.name)
  const [fields, setFields] = useNarrowing()
  const [reached, setReached] = useState<Propagation | null>(null)
  const narrower = narrowingBody(fields)
  /** What the change is made over: a newer version, once it was looked at. */
  const [saved, setSaved] = useState(token)
  const version = useRef(token.version)
  const changes = { ...(name === saved.name ? {} : { name }), ...narrower }
  const { run, busy, refusal, clear, form } = useAction(
    () => api('PATCH /v1/tokens/{id}', { params: { id: token.id }, body: changes, ifMatch: version.current }),
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
        <RequiredNote />
        <TextField label="Name" value={name} set={setName} required fault={faultOf(refusal, 'name')} />
        <NarrowingFields token={saved} holder="The token" fields={fields} set={setFields} refusal={refusal} />
        {refusal !== null && (
          <Conflict<TokenRecord>
            refusal={refusal}
            read={() => api('GET /v1/tokens/{id}', { params: { id: token.id } })}
            fieldsOf={narrowableFields}
            mine={readableChanges(changes)}
            saveMine={(theirs) => {
              version.current = theirs.version
              run()
            }}
            takeTheirs={(theirs) => {
              version.current = theirs.version
              setSaved(theirs)
              setName(theirs.name)
              setFields(noNarrowing)
              clear()
            }}
          />
        )}
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
