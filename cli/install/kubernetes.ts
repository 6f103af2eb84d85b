/** A Deployment whose application has a gateway beside it, as a native sidecar (Kubernetes 1.29 and later). */
import { defineCommand } from 'citty'
import { Failure } from '../../src/failure.ts'
import { isHostName } from '../../src/lib/http/host-name.ts'
import { version } from '../../src/version.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { requireImageName } from './image-name.ts'

export const kubernetes = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Print a Deployment with the gateway as a native sidecar, to merge into your own' },
    args: {
      name: { type: 'string', default: 'my-application', description: 'What the Deployment is called' },
      image: { type: 'string', default: `gatehouse:${version}`, description: 'The image, as your cluster pulls it' },
      'api-url': {
        type: 'string',
        default: 'https://gatehouse.example.com',
        description: 'The control plane, by https',
        valueHint: 'URL',
      },
    },
    async run({ args: { name, image, 'api-url': apiUrl } }) {
      if (!/^[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?$/.test(name)) {
        throw new Failure('usage', { message: '--name has lower-case letters, digits and dashes, 52 at most' })
      }
      requireImageName(image)
      await terminal.write(sidecarManifest({ name, image, apiUrl: addressOf(apiUrl) }))
    },
  })

function addressOf(apiUrl: string): string {
  const url = URL.parse(apiUrl)
  if (url?.protocol !== 'https:') {
    throw new Failure('usage', { message: '--api-url begins with https://: keys of providers pass there' })
  }
  if (url.href !== `${url.origin}/`) {
    throw new Failure('usage', { message: '--api-url is a scheme, a host and a port, and nothing behind them' })
  }
  if (!isHostName(url.hostname))
    throw new Failure('usage', { message: '--api-url names no host: letters, digits, - _ .' })
  return url.origin
}

/**
 * The manifest's text. What is filled in stands in quotes: YAML takes some names for other things. The probes come from
 * the node, so the gateway listens on the pod's address.
 */
export const sidecarManifest = ({
  name,
  image,
  apiUrl,
}: {
  name: string
  image: string
  apiUrl: string
}): string => `# The gateway's identity, from a token of purpose gateway_runtime, so that it is in no shell history:
#   gatehouse token create --name ${name} --purpose gateway-runtime --gateway-id ID --team-id ID > token
#   kubectl create secret generic ${name}-gatehouse --from-file=token && rm token
apiVersion: apps/v1
kind: Deployment
metadata:
  name: "${name}"
  labels: { app.kubernetes.io/name: "${name}" }
spec:
  replicas: 2
  selector:
    matchLabels: { app.kubernetes.io/name: "${name}" }
  template:
    metadata:
      labels: { app.kubernetes.io/name: "${name}" }
    spec:
      automountServiceAccountToken: false
      # Running requests finish (SERVICE_DRAIN_SECONDS), what limits hold goes back, events are shipped.
      terminationGracePeriodSeconds: 45
      initContainers:
        - name: gatehouse
          image: "${image}"
          args: [gateway]
          # With this an init container runs beside the application, started before it and stopped after it.
          restartPolicy: Always
          env:
            - { name: SERVICE_API_URL, value: "${apiUrl}" }
            - { name: SERVICE_GATEWAY_LISTEN, value: "0.0.0.0:7080" }
            - { name: SERVICE_DATA, value: /data }
            - name: SERVICE_API_TOKEN
              valueFrom:
                secretKeyRef: { name: "${name}-gatehouse", key: token }
          ports:
            - { name: gatehouse, containerPort: 7080 }
          # The application starts when the first replication is complete.
          startupProbe:
            httpGet: { path: /readyz, port: gatehouse }
            periodSeconds: 1
            failureThreshold: 120
          readinessProbe:
            httpGet: { path: /readyz, port: gatehouse }
            periodSeconds: 5
          livenessProbe:
            httpGet: { path: /healthz, port: gatehouse }
            periodSeconds: 10
            failureThreshold: 3
          resources:
            requests: { cpu: 100m, memory: 192Mi, ephemeral-storage: 1Gi }
            limits: { memory: 512Mi, ephemeral-storage: 3Gi }
          securityContext:
            runAsNonRoot: true
            runAsUser: 65532
            runAsGroup: 65532
            readOnlyRootFilesystem: true
            allowPrivilegeEscalation: false
            capabilities: { drop: [ALL] }
            seccompProfile: { type: RuntimeDefault }
          volumeMounts:
            - { name: gatehouse-data, mountPath: /data }
      containers:
        - name: application
          image: your-application
          env:
            - { name: OPENAI_BASE_URL, value: "http://127.0.0.1:7080/v1" }
            - { name: ANTHROPIC_BASE_URL, value: "http://127.0.0.1:7080" }
      volumes:
        # It outlives the container, not the pod. A pod that is lost with its node keeps what it held of limits spent,
        # until \`gatehouse usage release\` frees it.
        - name: gatehouse-data
          emptyDir: { sizeLimit: 3Gi }
      securityContext:
        fsGroup: 65532
`
