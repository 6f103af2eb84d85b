/** The limits of a token that may only shrink: each field shows what the token has; an empty one leaves it so. */
import { useState } from 'preact/hooks'
import type { Refusal } from '../../api/request.ts'
import type { TokenRecord } from '../../api/routes.ts'
import { fullTime, money, number } from '../../formats.ts'
import { linesOf } from '../../lines.ts'
import { TextArea, TextField } from '../../parts/forms/field.tsx'

export const noNarrowing = { models: '', budget: '', requests: '', rpm: '', tpm: '', expires: '' }
export type Narrowing = typeof noNarrowing

export const useNarrowing = () => useState<Narrowing>(noNarrowing)

/** What is sent: only the fields that are filled in. */
export const narrowingBody = ({ models, budget, requests, rpm, tpm, expires }: Narrowing) => ({
  ...(models.trim() === '' ? {} : { bindings: { model_filter: linesOf(models) } }),
  ...(budget === '' ? {} : { max_budget: Number(budget) }),
  ...(requests === '' ? {} : { max_requests: Number(requests) }),
  ...(rpm === '' ? {} : { rate_limit_rpm: Number(rpm) }),
  ...(tpm === '' ? {} : { rate_limit_tpm: Number(tpm) }),
  ...(expires === '' ? {} : { expires_at: new Date(expires).toISOString() }),
})

/** What a token has of the same fields, as `readableChanges` names them. */
export const narrowableFields = ({ name, bindings, max_budget, max_requests, ...token }: TokenRecord) => ({
  ...{ name, max_budget, max_requests, expires_at: token.expires_at },
  ...{ rate_limit_rpm: token.rate_limit_rpm, rate_limit_tpm: token.rate_limit_tpm },
  models: bindings.model_filter?.join(', ') ?? null,
})

interface Changes {
  name?: string
  bindings?: { model_filter: readonly string[] }
}

/** What is sent, with the models beside the other fields: a person reads `gpt-*` and no JSON. */
export const readableChanges = ({ bindings, ...changes }: Changes) => ({
  ...changes,
  ...(bindings === undefined ? {} : { models: bindings.model_filter.join(', ') }),
})

/** What the API said of a field. */
export const faultOf = (refusal: Refusal | null, ...params: string[]): string | null =>
  refusal?.param != null && params.some((param) => refusal.param?.startsWith(param)) ? refusal.message : null

interface Props {
  token: TokenRecord
  /** `The source`, or `The token`. */
  holder: string
  fields: Narrowing
  set(fields: Narrowing): void
  refusal: Refusal | null
}

export function NarrowingFields({ token, holder, fields, set, refusal }: Props) {
  const { bindings, depletion, expires_at, rate_limit_rpm, rate_limit_tpm } = token
  const has = (what: string | null) => (what === null ? `${holder} has no limit` : `${holder} has ${what}`)
  const count = (limit: number | null) => has(limit === null ? null : number(limit))
  const of = (name: keyof Narrowing) => ({
    value: fields[name],
    set: (value: string) => set({ ...fields, [name]: value }),
  })
  return (
    <>
      <TextArea
        label="Models (fewer)"
        hint={`${has(bindings.model_filter?.join(', ') ?? null)}. One per line; * stands for anything.`}
        {...of('models')}
        rows={2}
        mono
        fault={faultOf(refusal, 'bindings.model_filter', 'model_filter')}
      />
      <div class="pair">
        <TextField
          label="Budget (USD, lower)"
          type="number"
          min={0}
          step="any"
          hint={has(depletion.max_budget === null ? null : money(depletion.max_budget))}
          {...of('budget')}
          fault={faultOf(refusal, 'max_budget')}
        />
        <TextField
          label="Requests (fewer)"
          type="number"
          min={1}
          hint={count(depletion.max_requests)}
          {...of('requests')}
          fault={faultOf(refusal, 'max_requests')}
        />
        <TextField
          label="Requests per minute (fewer)"
          type="number"
          min={1}
          hint={count(rate_limit_rpm)}
          {...of('rpm')}
          fault={faultOf(refusal, 'rate_limit_rpm')}
        />
        <TextField
          label="Tokens per minute (fewer)"
          type="number"
          min={1}
          hint={count(rate_limit_tpm)}
          {...of('tpm')}
          fault={faultOf(refusal, 'rate_limit_tpm')}
        />
      </div>
      <TextField
        label="Expires (earlier)"
        type="datetime-local"
        hint={has(expires_at === null ? null : `until ${fullTime(expires_at)}`)}
        {...of('expires')}
        fault={faultOf(refusal, 'expires')}
      />
    </>
  )
}
