import { useEffect, useState } from 'preact/hooks'
import { api } from '../api/routes.ts'
import { useAction, useModal } from '../parts/dialog.tsx'
import { TextField } from '../parts/field.tsx'
import { Alone, Brand } from '../parts/frame.tsx'
import { Fault } from '../parts/loaded.tsx'
import { sessionNote, signedIn } from '../session.ts'

/** Over a screen whose session has ended: nothing of it can be seen or reached, and it is there again afterwards. */
export function SignInAgain() {
  const { element, ...held } = useModal(true, () => undefined)
  return (
    <dialog ref={element} class="whole" aria-label="Sign in" {...held}>
      <SignIn />
    </dialog>
  )
}

/** Stands in place of whatever the address names, which is shown once somebody has signed in. */
export function SignIn() {
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  useEffect(() => {
    document.title = 'Sign in · Gatehouse'
  }, [])
  const { run, busy, refusal } = useAction(async () => {
    await api('POST /v1/auth/login', { body: { email, password } })
    return await api('GET /v1/auth/session', {})
  }, signedIn)
  return (
    <Alone>
      <Brand />
      <form
        class="card form"
        onSubmit={(event) => {
          event.preventDefault()
          run()
        }}
      >
        <h1>Sign in</h1>
        {sessionNote.value !== null && <p class="note">{sessionNote.value}</p>}
        <TextField
          label="E-mail address"
          type="email"
          value={email}
          set={setEmail}
          autocomplete="username"
          required
          focus
        />
        <TextField
          label="Password"
          type="password"
          value={password}
          set={setPassword}
          autocomplete="current-password"
          required
        />
        {refusal !== null && <Fault refusal={refusal} />}
        <button type="submit" class="primary" disabled={busy}>
          {busy ? 'Signing in…' : 'Sign in'}
        </button>
      </form>
      <p class="small quiet">
        No account yet? An owner or admin makes one, with <code>gatehouse user create</code>. The first owner uses the
        link that the first start printed.
      </p>
    </Alone>
  )
}
