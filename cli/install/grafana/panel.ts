/** Makes the JSON of a dashboard: Grafana's schema 39 (Grafana 11 and later), with a variable for the data source. */

export interface Panel {
  title: string
  /** A unit of Grafana, such as `reqps` or `s`. */
  unit: string
  /** PromQL, and what a line is called. */
  queries: readonly (readonly [expression: string, legend: string])[]
}

export interface Dashboard {
  uid: string
  title: string
  panels: readonly Panel[]
}

const source = { type: 'prometheus', uid: '$datasource' }
/** Of the grid's 24 columns, so that two panels stand beside each other. */
const width = 12
const height = 8

const panelOf = ({ title, unit, queries }: Panel, index: number) => ({
  id: index + 1,
  type: 'timeseries',
  title,
  datasource: source,
  gridPos: { x: (index % 2) * width, y: Math.floor(index / 2) * height, w: width, h: height },
  fieldConfig: { defaults: { unit, min: 0, custom: { fillOpacity: 10, showPoints: 'never' } }, overrides: [] },
  options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
  targets: queries.map(([expr, legendFormat], at) => ({
    refId: String.fromCharCode('A'.charCodeAt(0) + at),
    ...{ datasource: source, expr, legendFormat },
  })),
})

export const dashboardJson = ({ uid, title, panels }: Dashboard) => ({
  ...{ uid, title, tags: ['gatehouse'], schemaVersion: 39, version: 1, editable: true, timezone: 'browser' },
  time: { from: 'now-6h', to: 'now' },
  refresh: '30s',
  templating: {
    list: [{ name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', current: {} }],
  },
  panels: panels.map(panelOf),
})
