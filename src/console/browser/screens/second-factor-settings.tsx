/** The person's own second factor: added with the password and a code, removed with the same. */
import { useState } from 'preact/hooks'
import { api } from '../api/routes.ts'
import { TextField } from '../parts/forms/field.tsx'
import { useAction } from '../parts/frame/dialog.tsx'
import { showToast } from '../parts/frame/toast.tsx'
import { ErrorNote } from '../parts/loaded.tsx'
import { SecretLine } from '../parts/secret.tsx'
import { acceptCaller, caller } from '../session.ts'
import { CodeField } from './sign-in/second-factor.tsx'

export function SecondFactor() {
  const user = caller.value?.user
  if (user?.has_password !== true) return null
  return (
    <section class="card stack">
      <h2>Second factor</h2>
      {user.has_second_factor ? <Remove /> : <Add />}
    </section>
  )
}

/** The account as it is now. */
const lookAgain = async () => acceptCaller(await api('GET /v1/auth/session', {}))

function Add() {
  const [password, setPassword] = useState('')
  const [made, setMade] = useState<{ secret: string; otpauth_uri: string } | null>(null)
  const [code, setCode] = useState('')
  const begin = useAction(
    () => api('POST /v1/auth/second-factor/begin', { body: { current_password: password } }),
    setMade,
  )
  const confirm = useAction(
    async () => {
      await api('POST /v1/auth/second-factor/confirm', { body: { code } })
      await lookAgain()
    },
    () => showToast('Signing in by password needs a code from now on. Your other sessions have ended.'),
  )
  const { busy, refusal, form } = made === null ? begin : confirm
  return (
    <form class="form" {...form}>
      {made === null ? (
        <>
          <p>With an authenticator app your password alone is not enough to sign in.</p>
          <TextField
            label="Your password"
            type="password"
            autocomplete="current-password"
            value={password}
            set={setPassword}
            required
          />
        </>
      ) : (
        <>
          <p>
            Add this key to your authenticator app, or <a href={made.otpauth_uri}>open the app on this device</a>. Then
            write the code that it shows.
          </p>
          <SecretLine secret={made.secret} what="Key" />
          <CodeField code={code} set={setCode} />
        </>
      )}
      {refusal !== null && <ErrorNote refusal={refusal} />}
      <div class="row">
        <button type="submit" disabled={busy}>
          {made === null ? 'Add an authenticator app' : 'Confirm'}
        </button>
      </div>
    </form>
  )
}

function Remove() {
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const { busy, refusal, form } = useAction(
    async () => {
      await api('POST /v1/auth/second-factor/remove', { body: { current_password: password, code } })
      await lookAgain()
    },
    () => showToast('The authenticator app is removed'),
  )
  return (
    <form class="form" {...form}>
      <p>Signing in by password needs a code of your authenticator app.</p>
      <TextField
        label="Your password"
        type="password"
        autocomplete="current-password"
        value={password}
        set={setPassword}
        required
      />
      <TextField label="Code" value={code} set={setCode} autocomplete="one-time-code" required mono />
      {refusal !== null && <ErrorNote refusal={refusal} />}
      <div class="row">
        <button type="submit" class="danger" disabled={busy}>
          Remove the app
        </button>
      </div>
    </form>
  )
}
