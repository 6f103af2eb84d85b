/** A secret that is shown once: it is in this page's memory only and is gone with it. */
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useState } from 'preact/hooks'
import { recipes } from '../../../clients/index.ts'
import { setupBlocks } from '../../../clients/recipe.ts'
import { warnBeforeLeaving } from '../address.ts'
import { installation } from '../installation.ts'
import { Dialog } from './dialog.tsx'
import { SelectField, TextField } from './field.tsx'
import { copy } from './small.tsx'

const curl = (secret: string, model: string) => `curl ${installation.gateway_url}/v1/chat/completions \\
  -H "Authorization: Bearer ${secret}" \\
  -H "Content-Type: application/json" \\
  -d '{"model":${JSON.stringify(model)},"messages":[{"role":"user","content":"Hello"}]}'`

const clients = [['curl', 'curl'], ...recipes.map(({ name, title }) => [name, title] as const)] as const

export const SecretLine = ({ secret, what }: { secret: string; what: string }) => (
  <div class="secret">
    <code data-secret>{secret}</code>
    <button type="button" onClick={() => copy(secret, what)}>
      Copy
    </button>
  </div>
)

/** Asks for what answers with a secret. Whoever leaves before that is asked first: nobody would ever see the secret. */
export async function askForSecret<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  const answered = warnBeforeLeaving('A new secret is being created and is shown only here. Leave without it?')
  try {
    return await ask()
  } finally {
    answered()
  }
}

let release = (): void => undefined

/** For what a person presses to say that the secret is where they want it: then nothing holds them back. */
export const secretKept = (): void => release()

/** The secret of a new token, with what connects a client by it at once. */
export function TokenSecret({ secret, model = 'simulator/echo' }: { secret: string; model?: string | undefined }) {
  // From the moment the secret can be seen: who leaves at once loses it as well.
  useLayoutEffect(() => {
    release = warnBeforeLeaving('The secret is shown only here. Leave without saving it?')
    return () => release()
  }, [])
  return (
    <div class="stack">
      <p>
        <strong>This is shown once.</strong> Keep it where you keep secrets. Only its hash is stored: nobody can show it
        to you again. If it is lost, rotate the token.
      </p>
      <SecretLine secret={secret} what="Token" />
      <ClientSetup secret={secret} model={model} />
    </div>
  )
}

/** What one client needs, in its own formats: the same that `gatehouse connect` prints. */
function ClientSetup({ secret, model: usual }: { secret: string; model: string }) {
  const [client, setClient] = useState('curl')
  const [model, setModel] = useState(usual)
  const recipe = recipes.find(({ name }) => name === client)
  const { gateway_url: gatewayUrl } = installation
  const named = model.trim() === '' ? usual : model.trim()
  const setup = recipe?.setup({ gatewayUrl, models: [named], token: secret, tokenFile: null })
  const blocks = setup === undefined ? [{ where: 'In the shell', text: curl(secret, named) }] : setupBlocks(setup)
  return (
    <>
      <div class="pair">
        <SelectField label="Client" value={client} set={setClient} options={clients} />
        <TextField label="Model" value={model} set={setModel} mono placeholder={usual} />
      </div>
      {blocks.map(({ where, text }) => (
        <div class="stack close" key={where}>
          <div class="row between">
            <strong>{where}</strong>
            <button type="button" aria-label={`Copy snippet: ${where}`} onClick={() => copy(text, 'Snippet')}>
              Copy snippet
            </button>
          </div>
          <pre class="card">{text}</pre>
        </div>
      ))}
      {setup !== undefined && setup.steps.length > 0 && (
        <ul class="stack close">
          {setup.steps.map((step) => (
            <li key={step}>{step}</li>
          ))}
        </ul>
      )}
      {setup !== undefined && setup.files.length > 0 && (
        <p class="quiet">
          <code>gatehouse connect {client} --write</code> changes the files for you, and keeps the secret out of them
          where the client allows it.
        </p>
      )}
    </>
  )
}

interface SecretDialogProps {
  title: string
  secret: string
  /** Where one goes on; absent: where one was. */
  to?: string
  close(): void
  children?: ComponentChildren
}

/** A new secret over the screen it was made on; nothing but its own button closes it. */
export function SecretDialog({ title, secret, to, close, children }: SecretDialogProps) {
  const kept = () => {
    secretKept()
    close()
  }
  const words = 'I have saved it'
  return (
    <Dialog title={title} stays close={close}>
      <TokenSecret secret={secret} />
      {children}
      <div class="row end">
        {to === undefined ? (
          <button type="button" class="primary" onClick={kept}>
            {words}
          </button>
        ) : (
          <a class="button primary" href={to} onClick={kept}>
            {words}
          </a>
        )}
      </div>
    </Dialog>
  )
}
