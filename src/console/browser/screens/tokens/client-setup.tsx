/** What one client needs to use a token, to copy. */
import { useState } from 'preact/hooks'
import { recipes } from '../../../../clients/index.ts'
import { type ClientLanguage, setupBlocks, shellWord } from '../../../../clients/recipe.ts'
import { installation } from '../../installation.ts'
import { SelectField, TextField } from '../../parts/forms/field.tsx'
import { copy } from '../../parts/small.tsx'

const curl = (secret: string, model: string) => `curl ${installation.gateway_url}/v1/chat/completions \\
  -H "Authorization: Bearer ${secret}" \\
  -H "Content-Type: application/json" \\
  -d ${shellWord(JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }))}`

const clients = [['curl', 'curl'], ...recipes.map(({ name, title }) => [name, title] as const)] as const

interface Props {
  secret: string
  /** The models that the token may use, the best for a client of this language first. */
  modelsFor(language: ClientLanguage): readonly string[]
}

/** What one client needs, in its own formats: the same that `gatehouse connect` prints. */
export function ClientSetup({ secret, modelsFor }: Props) {
  const [client, setClient] = useState('curl')
  /** Null until a model is typed: then it stays for every client. */
  const [typed, setTyped] = useState<string | null>(null)
  const recipe = recipes.find(({ name }) => name === client)
  const { gateway_url: gatewayUrl } = installation
  const models = modelsFor(recipe?.speaks ?? 'chat')
  const model = typed ?? models[0] ?? ''
  const named = model.trim()
  const setup = recipe?.setup({ gatewayUrl, models: [named], token: secret, tokenFile: null })
  const blocks = setup === undefined ? [{ where: 'In the shell', text: curl(secret, named) }] : setupBlocks(setup)
  // An example without a model would not run.
  const shown = named === '' ? [] : blocks
  return (
    <>
      <div class="pair">
        <SelectField label="Client" value={client} set={setClient} options={clients} />
        <TextField
          label="Model"
          hint={models.length === 0 ? 'No model of the catalog fits this token: name one that it may use' : undefined}
          value={model}
          set={setTyped}
          suggestions={models}
          mono
        />
      </div>
      {shown.map(({ where, text }) => (
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
