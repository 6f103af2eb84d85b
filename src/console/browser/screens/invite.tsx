/** Invites a person: a link with which they set their own password, shown once. */
import { useState } from 'preact/hooks'
import { api } from '../api/routes.ts'
import { Dialog, useAction } from '../parts/frame/dialog.tsx'
import { ErrorNote } from '../parts/loaded.tsx'
import { SecretLine } from '../parts/secret.tsx'
import { Time } from '../parts/small.tsx'

interface Made {
  invitation_url: string
  expires_at: string
}

export function Invite({ id, email }: { id: string; email: string }) {
  const [made, setMade] = useState<Made | null>(null)
  const { run, busy, refusal } = useAction(() => api('POST /v1/users/{id}/invitation', { params: { id } }), setMade)
  return (
    <>
      <button type="button" disabled={busy} onClick={run}>
        Invite
      </button>
      {refusal !== null && <ErrorNote refusal={refusal} />}
      {made !== null && (
        <Dialog title={`Invitation for ${email}`} stays close={() => setMade(null)}>
          <p>
            Give this link to {email} alone: whoever opens it first sets the password of the account. It works once,
            until <Time at={made.expires_at} />, and earlier links have ended.
          </p>
          <SecretLine secret={made.invitation_url} what="Link" />
          <div class="row">
            <button type="button" class="primary" onClick={() => setMade(null)}>
              Done
            </button>
          </div>
        </Dialog>
      )}
    </>
  )
}
