/**
 * Counters and histograms as plain numbers in memory, and their text in Prometheus' exposition format (version 0.0.4),
 * which is made when it is asked for. What is counted on the hot path costs an addition and a look-up.
 */

/** Counts by labels, which are given as the text between the braces: `family="chat",verdict="allow"`. */
export type LabelledCounts = Map<string, number>

export const count = (counts: LabelledCounts, labels: string, by = 1): void => {
  counts.set(labels, (counts.get(labels) ?? 0) + by)
}

export interface Histogram {
  readonly bounds: readonly number[]
  readonly counts: number[]
  sum: number
  count: number
}

export const histogram = (bounds: readonly number[]): Histogram => ({
  bounds,
  counts: bounds.map(() => 0),
  sum: 0,
  count: 0,
})

export function observe(histogram: Histogram, value: number): void {
  histogram.sum += value
  histogram.count += 1
  const { bounds, counts } = histogram
  for (let index = 0; index < bounds.length; index++) {
    if (value <= (bounds[index] ?? 0)) {
      counts[index] = (counts[index] ?? 0) + 1
      return
    }
  }
}

const head = (name: string, help: string, type: string) => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`

export const counterText = (name: string, help: string, counts: ReadonlyMap<string, number>): string =>
  head(name, help, 'counter') +
  [...counts].map(([labels, value]) => `${name}${labels === '' ? '' : `{${labels}}`} ${value}\n`).join('')

export const gaugeText = (name: string, help: string, value: number): string =>
  `${head(name, help, 'gauge')}${name} ${value}\n`

/** One histogram for each value of a label. */
export const histogramsText = (
  name: string,
  help: string,
  label: string,
  histograms: ReadonlyMap<string, Histogram>,
): string =>
  head(name, help, 'histogram') +
  [...histograms].map(([value, histogram]) => samplesOf(name, `${label}="${value}"`, histogram)).join('')

export const histogramText = (name: string, help: string, histogram: Histogram): string =>
  head(name, help, 'histogram') + samplesOf(name, '', histogram)

function samplesOf(name: string, labels: string, { bounds, counts, sum, count }: Histogram): string {
  const [first, all] = labels === '' ? ['', ''] : [`${labels},`, `{${labels}}`]
  let below = 0
  const buckets = bounds.map((bound, index) => {
    below += counts[index] ?? 0
    return `${name}_bucket{${first}le="${bound}"} ${below}\n`
  })
  return `${buckets.join('')}${name}_bucket{${first}le="+Inf"} ${count}\n${name}_sum${all} ${sum}\n${name}_count${all} ${count}\n`
}

const headLine = /^# (?:HELP|TYPE) (\S+)/
const sampleLine = /^([^\s{]+)(?:\{(.*)\})? (.+)$/

/**
 * Several processes' expositions as one: each family once, with every process's samples under a label `worker` that names
 * it. What one process alone has to say stands too.
 */
export function joinedText(texts: ReadonlyMap<string, string>): string {
  const families = new Map<string, { head: string; samples: string[] }>()
  for (const [worker, text] of texts) {
    let family = { head: '', samples: [] as string[] }
    let isNew = false
    for (const line of text.split('\n')) {
      const name = headLine.exec(line)?.[1]
      if (name !== undefined) {
        const known = families.get(name)
        if (known !== family) isNew = known === undefined
        family = known ?? { head: '', samples: [] }
        families.set(name, family)
        if (isNew) family.head += `${line}\n`
        continue
      }
      const [, sample, labels, value] = sampleLine.exec(line) ?? []
      if (sample === undefined) continue
      const all = `worker="${worker}"${labels ? `,${labels}` : ''}`
      family.samples.push(`${sample}{${all}} ${value}\n`)
    }
  }
  return [...families.values()].map(({ head, samples }) => head + samples.join('')).join('')
}
