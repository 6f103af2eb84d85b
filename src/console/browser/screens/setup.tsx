import { useEffect, useState } from 'preact/hooks'
import { go, href } from '../address.ts'
import { api } from '../api/routes.ts'
import { useAction } from '../parts/dialog.tsx'
import { TextField } from '../parts/field.tsx'
import { Alone, Brand } from '../parts/frame.tsx'
import { Fault } from '../parts/loaded.tsx'
import { caller } from '../session.ts'

/** Takes the secret out of the fragment, which browsers do not send, and out of the history. */
function secretOfLink(): string {
  const secret = location.hash.slice(1)
  if (secret !== '') history.replaceState(null, '', location.pathname)
  return secret
}

const linkSecret = location.hash.length > 1 && location.pathname.endsWith('/setup') ? secretOfLink() : ''

/** Where the one-time link of the first start leads: the owner says who they are. */
export function Setup() {
  const [secret, setSecret] = useState(linkSecret)
  const [email, setEmail] = useState('')
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  useEffect(() => {
    document.title = 'Set up · Gatehouse'
  }, [])
  const { run, busy, refusal } = useAction(
    async () => {
      await api('POST /v1/auth/setup', { body: { secret: secret.trim(), email, name, password } })
      return await api('GET /v1/auth/session', {})
    },
    (found) => {
      caller.value = found
      go(href('/'), { replace: true })
    },
  )
  const fault = (param: string) => (refusal?.param === param ? refusal.message : null)
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
        <h1>Set up Gatehouse</h1>
        <p>You become the owner of this installation. The link works once, for 15 minutes after the start.</p>
        {linkSecret === '' && (
          <TextField
            label="Setup code"
            hint="What follows # in the link that the first start printed"
            value={secret}
            set={setSecret}
            required
            mono
            fault={fault('secret')}
          />
        )}
        <TextField
          label="Your e-mail address"
          type="email"
          value={email}
          set={setEmail}
          autocomplete="username"
          required
          focus
          fault={fault('email')}
        />
        <TextField label="Your name" value={name} set={setName} autocomplete="name" required fault={fault('name')} />
        <TextField
          label="A new password"
          hint="12 characters or more"
          type="password"
          value={password}
          set={setPassword}
          autocomplete="new-password"
          minLength={12}
          required
          fault={fault('password')}
        />
        {refusal !== null && <Fault refusal={refusal} />}
        <button type="submit" class="primary" disabled={busy}>
          {busy ? 'Setting up…' : 'Set up'}
        </button>
      </form>
    </Alone>
  )
}
