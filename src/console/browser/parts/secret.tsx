/** A secret that is shown once: it is in this page's memory only and is gone with it. */
import { useLayoutEffect } from 'preact/hooks'
import { warnBeforeLeaving } from '../address.ts'
import { copy } from './small.tsx'

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

/** Asks before the page is left without `secretKept`: once the secret is shown, it can be lost. */
export function useSecretWarning(): void {
  useLayoutEffect(() => {
    release = warnBeforeLeaving('The secret is shown only here. Leave without saving it?')
    return () => release()
  }, [])
}
