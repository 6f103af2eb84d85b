/** A secret that is shown once: it is in this page's memory only and is gone with it. */
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useState } from 'preact/hooks'
import { warnBeforeLeaving } from '../address.ts'
import { installation } from '../installation.ts'
import { Dialog } from './dialog.tsx'
import { copy } from './small.tsx'

const curl = (secret: string) => `curl ${installation.gateway_url}/v1/chat/completions \\
  -H "Authorization: Bearer ${secret}" \\
  -H "Content-Type: application/json" \\
  -d '{"model":"simulator/echo","messages":[{"role":"user","content":"Hello"}]}'`

const javascript = (secret: string) => `import OpenAI from 'openai'

const client = new OpenAI({
  baseURL: '${installation.gateway_url}/v1',
  apiKey: '${secret}',
})`

const python = (secret: string) => `from openai import OpenAI

client = OpenAI(
    base_url="${installation.gateway_url}/v1",
    api_key="${secret}",
)`

const anthropic = (secret: string) => `import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({
  baseURL: '${installation.gateway_url}',
  apiKey: '${secret}',
})`

const snippets = { curl, JavaScript: javascript, Python: python, Anthropic: anthropic } as const
type Language = keyof typeof snippets
const languages: readonly Language[] = ['curl', 'JavaScript', 'Python', 'Anthropic']

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

/** The secret of a new token, with what uses it at once. */
export function TokenSecret({ secret }: { secret: string }) {
  const [language, setLanguage] = useState<Language>('curl')
  const text = snippets[language](secret)
  // From the moment the secret can be seen: who leaves at once loses it as well.
  useLayoutEffect(() => {
    release = warnBeforeLeaving('The secret is shown only here. Leave without saving it?')
    return () => release()
  }, [])
  return (
    <div class="stack">
      <p>
        <strong>This is shown once.</strong> Keep it where you keep secrets. Only its hash is stored: noAttribution can
        show it to you again. If it is lost, rotate the token.
      </p>
      <SecretLine secret={secret} what="Token" />
      <div class="stack close">
        <div class="row between">
          {/* biome-ignore lint/a11y/useSemanticElements: buttons that choose, laid out as a row */}
          <div class="row" role="group" aria-label="Snippet">
            {languages.map((name) => (
              <button
                type="button"
                key={name}
                class={name === language ? '' : 'plain'}
                aria-pressed={name === language}
                onClick={() => setLanguage(name)}
              >
                {name}
              </button>
            ))}
          </div>
          <button type="button" onClick={() => copy(text, 'Snippet')}>
            Copy snippet
          </button>
        </div>
        <pre class="card">{text}</pre>
      </div>
    </div>
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
