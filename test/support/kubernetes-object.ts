/** Checks objects by the schemas of Kubernetes and of the Prometheus operator. */
import { ServiceMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor'
import { Deployment, StatefulSet } from 'kubernetes-models/apps/v1'
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2'
import { Ingress, NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1'
import { Service } from 'kubernetes-models/v1'
import { z } from 'zod'

export const objectSchema = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), labels: z.record(z.string(), z.string()) }),
  spec: z.looseObject({}),
})
export type KubernetesObject = z.infer<typeof objectSchema>

const kinds: Readonly<Record<string, new (content: never) => { validate(): void }>> = {
  'apps/v1 Deployment': Deployment,
  'apps/v1 StatefulSet': StatefulSet,
  'autoscaling/v2 HorizontalPodAutoscaler': HorizontalPodAutoscaler,
  'monitoring.coreos.com/v1 ServiceMonitor': ServiceMonitor,
  'networking.k8s.io/v1 Ingress': Ingress,
  'networking.k8s.io/v1 NetworkPolicy': NetworkPolicy,
  'policy/v1 PodDisruptionBudget': PodDisruptionBudget,
  'v1 Service': Service,
}

/** The objects of a manifest. */
export const objectsIn = (manifest: string): KubernetesObject[] =>
  manifest
    .split(/^---$/m)
    .map((text) => Bun.YAML.parse(text))
    .filter((content) => content !== null && content !== undefined)
    .map((content) => objectSchema.parse(content))

/** What is wrong with an object; null where nothing is. */
export function faultOf(object: KubernetesObject): string | null {
  const Kind = kinds[`${object.apiVersion} ${object.kind}`]
  if (Kind === undefined) return `${object.apiVersion} ${object.kind} is not known here`
  try {
    // The schemas are what checks it, so its type is not known before.
    new Kind(object as never).validate()
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
