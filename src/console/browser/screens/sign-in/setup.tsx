import { useState } from 'preact/hooks'
import { href, navigate } from '../../address.ts'
import { api } from '../../api/routes.ts'
import { installation } from '../../installation.ts'
import { TextField } from '../../parts/forms/field.tsx'
import { Brand, StandalonePage } from '../../parts/frame/frame.tsx'
import { caller } from '../../session.ts'
import { secretOfLink } from './secret-of-link.ts'
import { StandaloneForm } from './standalone-form.tsx'

const linkSecret = secretOfLink('/setup')

/** Where the one-time link of the first start leads: the owner says who they are. */
export function Setup() {
  const [secret, setSecret] = useState(linkSecret)
  const [email, setEmail] = useState('')
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  if (installation.set_up === true || caller.value != null) return <AlreadySetUp />
  return (
    <StandaloneForm
      title="Set up Gatehouse"
      action={['Set up', 'Setting up…']}
      send={() => api('POST /v1/auth/setup', { body: { secret: secret.trim(), email, name, password } })}
      done={() => navigate(href('/'), { replace: true })}
    >
      {(fault) => (
        <>
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
            label="New password"
            hint="12 characters or more"
            type="password"
            value={password}
            set={setPassword}
            autocomplete="new-password"
            minLength={12}
            required
            fault={fault('password')}
          />
        </>
      )}
    </StandaloneForm>
  )
}

/** The link works once; whoever comes by it later is told where to go instead. */
function AlreadySetUp() {
  const email = caller.value?.user?.email
  return (
    <StandalonePage>
      <Brand />
      <div class="card stack">
        <h1>Gatehouse is set up</h1>
        <p>
          The setup link has done its work: this installation has its owner.{' '}
          {email === undefined ? 'Sign in with your account.' : `You are signed in as ${email}.`}
        </p>
        <a class="button primary" href={href('/')}>
          {email === undefined ? 'Sign in' : 'Go to the overview'}
        </a>
      </div>
    </StandalonePage>
  )
}
