/** The dialog that decides on one request that waits for a person. */
import { useState } from 'preact/hooks'
import { api, type Escalation } from '../../api/routes.ts'
import { Dialog, useAction } from '../../parts/dialog.tsx'
import { SelectField, TextArea } from '../../parts/field.tsx'
import { ErrorNote } from '../../parts/loaded.tsx'
import { showToast } from '../../parts/toast.tsx'
import { UserText } from '../../parts/user-text.tsx'

export type Decision = 'allow' | 'block'

interface DecideProps {
  escalation: Escalation
  decision: Decision
  close(): void
  done(decided: Escalation): void
}

export function Decide({ escalation, decision, close, done }: DecideProps) {
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
    (decided) => {
      showToast(decision === 'allow' ? 'Allowed' : 'Blocked')
      done(decided)
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
          <UserText>{escalation.reason_code}</UserText>, asked with the token{' '}
          <UserText>{escalation.token.name ?? escalation.token.id}</UserText>
        </p>
        <TextArea label="Note" hint="Why, for the record" value={note} set={setNote} rows={2} />
        {decision === 'allow' && (
          <SelectField
            label="Allow a retry?"
            hint="The same token may send exactly the same request once. Gatehouse does not send it."
            value={grant}
            set={setGrant}
            options={[
              ['900', 'Yes, within 15 minutes'],
              ['3600', 'Yes, within an hour'],
              ['86400', 'Yes, within a day'],
              ['', 'No, only record the decision'],
            ]}
          />
        )}
        {refusal !== null && <ErrorNote refusal={refusal} />}
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
