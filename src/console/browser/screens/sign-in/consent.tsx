/**
 * Where an application's authorization request brings a person (RFC 6749 section 4.1.1): who asks, where they will be
 * sent back, what for. Nothing else is on the page. The query is handed to the API as it came; what is wrong with it,
 * and where the browser may go, is decided there. An approval names what was shown here, and to whom.
 */
import { useEffect } from 'preact/hooks'
import { address } from '../../address.ts'
import { api, type ConsentQuestion } from '../../api/routes.ts'
import { useLoaded } from '../../parts/loaded.tsx'
import { showInvisible, userText } from '../../parts/user-text.tsx'
import { DecisionButtons, DecisionPage } from './decision-page.tsx'
import { followRedirect } from './follow-redirect.ts'

type Asked = Record<string, string | string[]>

/** Every parameter of the query; one that came several times as a list, which the API refuses. */
function askedOf(query: URLSearchParams): Asked {
  return Object.fromEntries(
    [...new Set(query.keys())].map((name) => {
      const values = query.getAll(name)
      return [name, values.length === 1 ? (values[0] ?? '') : values]
    }),
  )
}

export function Consent() {
  const asked = askedOf(address.value.query)
  const found = useLoaded(address.value.query.toString(), (signal) =>
    api('POST /v1/oauth/authorize/preview', { body: asked, signal }),
  )
  const redirectTo = found.value?.redirect_to
  useEffect(() => {
    if (redirectTo !== undefined) followRedirect(redirectTo)
  }, [redirectTo])
  return (
    <DecisionPage title="Authorize an application" question={found}>
      {(answer) => {
        if (answer.error_page !== undefined) return <Refused error={answer.error_page} />
        if (answer.redirect_to !== undefined) return <p>Returning to the application…</p>
        return <Question question={answer} asked={asked} lookAgain={found.reload} />
      }}
    </DecisionPage>
  )
}

const Refused = ({ error: { error, message } }: { error: { error: string; message: string } }) => (
  <>
    <h1>Invalid authorization request</h1>
    <p>{message}</p>
    <p>
      Nothing was given to anybody, and you are not sent back: the address to send you to could not be trusted. Tell
      whoever runs the application.
    </p>
    <p class="small quiet">
      <code>{error}</code>
    </p>
  </>
)

type WhatIsAsked = Pick<ConsentQuestion, 'client' | 'scopes'>

/** Apart from the page's own sentences, so that no name can pass for one. */
export const ApplicationName = ({ client: { client_name: name } }: Pick<WhatIsAsked, 'client'>) => (
  <blockquote title={showInvisible(name)}>“{userText(name)}”</blockquote>
)

/** Whose word the name is. Nobody here has looked at an application that speaks for itself. */
const Origin = ({ client: { client_id, created_by, origin } }: Pick<WhatIsAsked, 'client'>) => {
  if (origin === 'document') {
    return (
      <p class="note warn">
        It is published by <strong class="wrap">{new URL(client_id).host}</strong>. Nobody here has checked it: go on
        only if you know that address and started this yourself.
      </p>
    )
  }
  if (origin === 'registration') {
    return (
      <p class="note warn">
        It registered itself under this name. Nobody here has checked it: go on only if you started this yourself.
      </p>
    )
  }
  return <p>{created_by === null ? 'Registered by an administrator.' : `Registered by ${created_by.name}.`}</p>
}

export const ScopeList = ({ client, scopes }: WhatIsAsked) => (
  <>
    <Origin client={client} />
    <p>It asks to:</p>
    <ul class="points">
      {scopes.map(({ scope, sentence, held }) => (
        <li key={scope}>
          {sentence} <code class="quiet">{scope}</code>
          {!held && <div class="small quiet">Your role does not allow this, so the application does not get it.</div>}
        </li>
      ))}
    </ul>
  </>
)

function Question({ question, asked, lookAgain }: { question: ConsentQuestion; asked: Asked; lookAgain(): void }) {
  const { client, redirect_host, scopes, resources } = question
  const shown = scopes.map(({ scope }) => scope)
  return (
    <>
      <h1>Authorize this application?</h1>
      <p>Its name is</p>
      <ApplicationName client={client} />
      <ScopeList client={client} scopes={scopes} />
      {resources.length > 0 && (
        <p>
          Only at <span class="wrap">{resources.join(', ')}</span>.
        </p>
      )}
      <p>
        You will be sent back to <strong class="wrap">{redirect_host}</strong>.
      </p>
      <DecisionButtons
        question={JSON.stringify(question)}
        decide={(approve, account) =>
          api('POST /v1/oauth/authorize/decision', {
            body: {
              ...asked,
              approve,
              scopes: approve ? shown : [],
              user_id: account,
              client_name: client.client_name,
            },
          })
        }
        done={({ redirect_to, error_page }) => {
          if (redirect_to === undefined) throw new Error(error_page?.message ?? 'The request cannot be answered')
          followRedirect(redirect_to)
        }}
        lookAgain={lookAgain}
      />
    </>
  )
}
