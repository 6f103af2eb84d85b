/** The code of an authenticator app, for accounts that have one: asked for once the API says so. */
import { useState } from 'preact/hooks'
import { Refusal } from '../../api/request.ts'
import { TextField } from '../../parts/forms/field.tsx'

export function useSecondFactor() {
  const [code, setCode] = useState('')
  const [asked, setAsked] = useState(false)
  return {
    /** What a body has of it: nothing, before it is asked for. */
    given: asked ? { code } : {},
    /** Makes a call, and shows the field where the call needs a code. */
    async attempt<Reply>(send: () => Promise<Reply>): Promise<Reply> {
      try {
        return await send()
      } catch (error) {
        if (error instanceof Refusal && error.code === 'second_factor_required') setAsked(true)
        throw error
      }
    },
    field: asked && <CodeField code={code} set={setCode} />,
  }
}

export const CodeField = ({ code, set }: { code: string; set(code: string): void }) => (
  <TextField
    label="Code"
    hint="The six digits that your authenticator app shows"
    value={code}
    set={set}
    autocomplete="one-time-code"
    required
    focus
    mono
  />
)
