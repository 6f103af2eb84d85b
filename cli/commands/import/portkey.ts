/**
 * A config of Portkey (portkey.ai/docs/product/ai-gateway/configs): one JSON object that says where requests go. It
 * becomes a model whose targets are those of the config: fallback is the strategy priority with a tier for each, load
 * balancing the strategy weighted. One that is nested in a fallback shares a tier.
 */
import type { Path } from '../apply/documents.ts'
import { type Conversion, type Fields, presetOf, recordName, variableName } from './conversion.ts'

/** `name`: the model that the config becomes. */
export function fromPortkey(file: Conversion, name: string): void {
  const providers = new Map<string, string>()
  const mode = modeOf(file, [])
  const targets = file.each('targets')
  const read = (path: Path, more: Fields) => targetOf(file, path, { providers, name, more })
  const found =
    targets.length === 0
      ? [read([], {})]
      : targets.flatMap((path, index) => {
          const tier = mode === 'fallback' ? { tier: index + 1 } : {}
          const nested = file.each(...path, 'targets')
          if (nested.length === 0) return [read(path, { ...tier, ...weightOf(file, path) })]
          if (modeOf(file, path) === 'fallback' && mode === 'fallback') {
            file.note([...path, 'strategy'], 'A fallback within a fallback: its targets share a tier here')
          }
          return nested.map((inner) => read(inner, { ...tier, ...weightOf(file, inner) }))
        })
  const known = found.filter((target) => target !== null)
  const weighted = mode === 'loadbalance' || known.some(({ weight }) => weight !== undefined)
  if (known.length > 0) {
    const strategy = known.length > 1 ? (weighted ? 'weighted' : 'priority') : null
    file.add('models', { name, targets: known, strategy })
  }
  explain(file)
}

function modeOf(file: Conversion, path: Path): string {
  const at = [...path, 'strategy', 'mode']
  const mode = file.takeText(...at) ?? 'single'
  if (['single', 'fallback', 'loadbalance'].includes(mode)) return mode
  file.note(at, `Conditions on requests are policies of the kind condition: the targets are tried in their order`)
  return 'fallback'
}

const weightOf = (file: Conversion, path: Path): Fields => {
  const weight = file.takeNumber(...path, 'weight')
  return weight === null ? {} : { weight }
}

interface TargetOptions {
  providers: Map<string, string>
  name: string
  more: Fields
}

function targetOf(file: Conversion, path: Path, { providers, name, more }: TargetOptions): Fields | null {
  const named = file.takeText(...path, 'provider')?.replace(/^@/, '') ?? null
  const virtualKey = file.takeText(...path, 'virtual_key')
  const model = file.takeText(...path, 'override_params', 'model')
  // `@slug/model` names the provider too.
  const [, slug, ofSlug] = /^@([^/]+)\/(.+)$/.exec(model ?? '') ?? []
  const called = virtualKey ?? slug ?? named
  if (called === null) {
    file.note(path, 'names no provider')
    return null
  }
  const provider = providerOf(file, path, { called, service: named ?? slug ?? called, providers })
  if (model === null) file.note(path, `names no model: write upstream_model, unless the provider calls it ${name}`)
  return { provider, ...(model === null ? {} : { upstream_model: ofSlug ?? model }), ...more }
}

interface Named {
  called: string
  service: string
  providers: Map<string, string>
}

function providerOf(file: Conversion, path: Path, { called, service, providers }: Named): string {
  const name = recordName(called)
  const host = file.takeText(...path, 'custom_host')
  const secret = file.look(...path, 'api_key')
  if (secret !== null) {
    file.note(
      [...path, 'api_key'],
      `The secret itself stands here and is not copied: put it into the variable ${variableName(`${name}_API_KEY`)}`,
    )
  }
  const milliseconds = file.takeNumber(...path, 'request_timeout')
  if (providers.has(name)) return name
  providers.set(name, name)
  const preset = presetOf(service)
  if (preset === null && host === null) {
    file.note(path, `It is not said what ${called} is: openai is written; give its preset, or its kind and base_url`)
  }
  file.add('providers', {
    name,
    ...(preset === null ? { kind: 'openai' } : { preset }),
    base_url: host,
    api_key: { env: variableName(`${name}_API_KEY`) },
    timeouts: milliseconds === null ? null : { total_seconds: Math.max(1, Math.ceil(milliseconds / 1000)) },
  })
  return name
}

const reasons: Readonly<Record<string, string>> = {
  retry: 'How often a gateway retries is its own setting',
  cache: 'Answers are kept by a policy of the kind answer-cache',
  input_guardrails: 'Write policies of the stage pre_request',
  output_guardrails: 'Write policies of the stage post_request',
  before_request_hooks: 'Write policies of the stage pre_request',
  after_request_hooks: 'Write policies of the stage post_request',
  forward_headers: 'Headers of callers are not passed on',
  on_status_codes: 'What is tried again follows from the failure',
}

function explain(file: Conversion): void {
  const places = [[], ...file.each('targets'), ...file.each('targets').flatMap((path) => file.each(...path, 'targets'))]
  for (const path of places) {
    for (const [name, reason] of Object.entries(reasons)) {
      for (const at of [
        [...path, name],
        [...path, 'strategy', name],
      ])
        if (file.look(...at) !== null) file.note(at, reason)
    }
    for (const at of file.each(...path, 'override_params')) {
      if (at.at(-1) !== 'model') file.note(at, 'Write a policy of the kind request-rewrite')
    }
  }
}
