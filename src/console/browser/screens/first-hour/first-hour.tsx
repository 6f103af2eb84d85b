/**
 * Leads through the first hour of an installation: a provider, a model, a token, the first request, a policy, a budget.
 * What is done is read from the records themselves, so the guide knows what was done elsewhere, and goes when all is.
 */
import { useEffect, useState } from 'preact/hooks'
import { href } from '../../address.ts'
import { request } from '../../api/request.ts'
import { api, type FailedTest, type TokenRecord } from '../../api/routes.ts'
import { installation } from '../../installation.ts'
import { Icon } from '../../parts/icon.tsx'
import { type Loaded, useLoaded } from '../../parts/loaded.tsx'
import { Command, Time } from '../../parts/small.tsx'
import { hasPermission } from '../../session.ts'
import { recordsOf } from '../catalog/record-options.ts'
import { AddProvider } from './add-provider.tsx'
import { type FirstHourRecords, type StepName, stepNames, stepsTaken } from './steps.ts'

/** Where nothing is left to do, the page that is open does not ask again. */
let over = false

type FailedTests = Loaded<readonly FailedTest[]>

export function FirstHour({ failedTests }: { failedTests: FailedTests }) {
  if (over || !hasPermission('catalog:write')) return null
  return <Guide failedTests={failedTests} />
}

async function readRecords(signal: AbortSignal) {
  type Page = Record<string, unknown>
  const has = async (path: string) =>
    recordsOf(await request<Page>('GET', path, { query: { limit: 1 }, signal })).length > 0
  const query = { limit: 20 }
  const [{ providers }, { models }, { tokens }, hasPolicy, hasBudget] = await Promise.all([
    request<{ providers: FirstHourRecords['providers'] }>('GET', '/v1/catalog/providers', { query, signal }),
    request<{ models: FirstHourRecords['models'] }>('GET', '/v1/catalog/models', { query, signal }),
    api('GET /v1/tokens', { query: { ...query, purpose: 'general' }, signal }),
    has('/v1/policies'),
    has('/v1/budgets'),
  ])
  return { providers, models, tokens, hasPolicy, hasBudget }
}

async function newestRequest(signal: AbortSignal): Promise<FirstHourRecords['request']> {
  const query = { since: '90d', event_type: 'gateway.request.outcome', limit: 1 }
  return (await api('GET /v1/events', { query, signal })).events[0] ?? null
}

function Guide({ failedTests }: { failedTests: FailedTests }) {
  const records = useLoaded('first hour', readRecords)
  const [awaitsRequest, setAwaitsRequest] = useState(true)
  const arrived = useLoaded('first request', newestRequest, { everyMs: over || !awaitsRequest ? 0 : 3000 })
  useEffect(() => {
    if (arrived.value != null) setAwaitsRequest(false)
  }, [arrived.value])
  if (records.value === undefined || arrived.value === undefined) return null
  if (failedTests.value === undefined && failedTests.refusal === null) return null
  // Where the tests cannot be read, the provider counts as one that was not tested.
  const failed = failedTests.value?.map(({ provider_id: id }) => id) ?? []
  const taken = stepsTaken({ ...records.value, failedTests: failed, request: arrived.value })
  over = taken.size === stepNames.length
  if (over) return null
  const again = () => {
    records.reload()
    failedTests.reload()
  }
  return <Steps taken={taken} arrived={arrived.value} tokens={records.value.tokens} again={again} />
}

interface StepsProps {
  taken: ReadonlySet<StepName>
  arrived: FirstHourRecords['request']
  tokens: readonly TokenRecord[]
  /** Reads the records and the connection tests again. */
  again(): void
}

const titles: Readonly<Record<StepName, string>> = {
  provider: 'Connect a provider',
  model: 'List a model',
  token: 'Make a token for an application',
  request: 'Send the first request',
  policy: 'Add a policy',
  budget: 'Set a budget',
}

function Steps({ taken, ...props }: StepsProps) {
  const next = stepNames.find((name) => !taken.has(name))
  // An installation that serves already has one line about what it lacks; the others see the steps.
  const [open] = useState(!taken.has('request'))
  // One that has just been done stays, with what came of it, until the reader goes on.
  const [shown, setShown] = useState(next)
  return (
    <details class="card first-hour" open={open}>
      <summary class="lead">
        Getting started{' '}
        <span class="small quiet" role="status">
          {taken.size} of {stepNames.length} steps done
        </span>
      </summary>
      <ol class="stack close">
        {stepNames.map((name) => {
          const isShown = name === shown
          return (
            <li key={name} data-done={taken.has(name)}>
              <button
                type="button"
                class="plain step"
                aria-expanded={isShown}
                onClick={() => setShown(isShown ? undefined : name)}
              >
                <span class="badge" data-verdict={taken.has(name) ? 'allow' : 'error'}>
                  <Icon name={taken.has(name) ? 'allow' : 'pending'} />
                  <span class="hidden">{taken.has(name) ? 'Done:' : 'To do:'}</span>
                </span>
                {titles[name]}
              </button>
              {isShown && (
                <div class="stack close step-body">
                  <StepBody name={name} {...props} />
                  {taken.has(name) && next !== undefined && (
                    <div class="row">
                      <button type="button" onClick={() => setShown(next)}>
                        Next: {titles[next].toLowerCase()}
                      </button>
                    </div>
                  )}
                </div>
              )}
            </li>
          )
        })}
      </ol>
    </details>
  )
}

function StepBody({ name, arrived, tokens, again }: Omit<StepsProps, 'taken'> & { name: StepName }) {
  if (name === 'provider') return <AddProvider changed={again} />
  if (name === 'request') return <SendRequest arrived={arrived} tokens={tokens} />
  const [text, to, query, label] = links[name]
  return (
    <>
      <p>{text}</p>
      <div class="row">
        <a class="button" href={href(to, query)}>
          {label}
        </a>
      </div>
    </>
  )
}

const links = {
  model: [
    'Name a model that applications may ask for, the provider that answers, and what is tried when it fails. A provider that serves unlisted models needs none.',
    '/catalog',
    { kind: 'models', open: 'new' },
    'Add a model',
  ],
  token: [
    'Each application gets a token of its own, with limits that can only be narrowed. The provider’s key stays here.',
    '/tokens/new',
    {},
    'Make a token',
  ],
  policy: [
    'A policy looks at requests and answers: it can redact personal data, block secrets, or ask a person. Start from a ready one, and watch before you enforce.',
    '/policies/new',
    {},
    'Choose a policy',
  ],
  budget: [
    'A budget is money for a day, a week or a month, for all or for a team. A request that would exceed it is refused before it is sent.',
    '/catalog',
    { kind: 'budgets', open: 'new' },
    'Set a budget',
  ],
} as const

/** What to send, and the moment when it arrives. */
function SendRequest({ arrived, tokens }: Pick<StepsProps, 'arrived' | 'tokens'>) {
  const body = { model: 'simulator/echo', messages: [{ role: 'user', content: 'Hello' }] }
  const command = `curl ${installation.gateway_url}/v1/chat/completions \\
  -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
  -d '${JSON.stringify(body)}'`
  const token = tokens.find(({ roles }) => !roles.includes('owner'))
  return (
    <>
      <p>
        {token === undefined ? 'Make a token first, and put its secret into ' : 'Put the secret of the token into '}
        <code>TOKEN</code>. The model <code>simulator/echo</code> answers without a provider; replace it by one of
        yours.
      </p>
      <Command text={command} />
      <p role="status" aria-live="polite">
        {arrived === null ? (
          'Waiting for the first request…'
        ) : (
          <>
            A request arrived <Time at={arrived.timestamp} />.{' '}
            <a href={href(`/traffic/${arrived.event_id}`)}>See what was decided</a>
          </>
        )}
      </p>
    </>
  )
}
