import {
  anyOfShapes,
  duration,
  enumeration,
  exactlyOne,
  type Infer,
  integer,
  jsonObject,
  list,
  map,
  name,
  object,
  optional,
  string,
} from '../../schema/dsl.ts'
import type { ConditionsStatus } from '../objects/gateway-api.ts'
import type { ObjectOf } from '../objects/meta.ts'

const maxName = { max: 253 }
const maxReplicas = 1_000

const keyReference = (what: string) =>
  object(
    {
      name: name({ doc: `Name of the ${what}, in the namespace of the Gateway.` }, maxName),
      key: name({ doc: 'Key.' }, maxName),
    },
    { doc: `Key of a ${what}.` },
  )

const variableSource = exactlyOne(
  {
    secretKeyRef: keyReference('Secret'),
    configMapKeyRef: keyReference('ConfigMap'),
    fieldRef: object(
      { fieldPath: name({ doc: 'Path in the Pod.', example: 'spec.nodeName' }, maxName) },
      { doc: 'Field of the Pod.' },
    ),
  },
  {},
  { doc: 'Source of a value.' },
)

const environmentVariable = exactlyOne(
  { value: string({ doc: 'Value, a string.', example: '200' }), valueFrom: variableSource },
  { name: name({ doc: 'Name.', example: 'GUARDRAIL_WEBHOOK_MAX_CONNECTIONS' }, maxName) },
  { doc: 'Environment variable of the proxies.' },
)

const image = object(
  {
    registry: optional(name({ doc: 'Host of the registry.', example: 'ghcr.io' }, maxName)),
    repository: optional(name({ doc: 'Repository.', example: 'tollgate/tollgate' }, maxName)),
    tag: optional(name({ doc: 'Tag.', example: '1.2.3' }, { max: 128 })),
    digest: optional(name({ doc: 'Digest, in place of the tag.', example: 'sha256:…' }, maxName)),
    pullPolicy: optional(enumeration(['Always', 'IfNotPresent', 'Never'], { doc: 'Pull policy.' })),
  },
  { doc: 'Image of the proxies. Other fields are those of the image of the controller.' },
)

const quantities = (doc: string) =>
  map(anyOfShapes([integer({ doc: 'Number.' }), string({ doc: 'Quantity.' })], { doc: 'Quantity.' }), {
    doc,
    example: { cpu: '100m', memory: '128Mi' },
  })

const resources = object(
  {
    requests: optional(quantities('Requests by resource.')),
    limits: optional(quantities('Limits by resource.')),
  },
  { doc: 'Resources of a proxy.', default: 'requests of 100m CPU and 128Mi memory' },
)

const annotations = map(string({ doc: 'Value.' }), { doc: 'Annotations.' })
const labels = map(string({ doc: 'Value.' }, { max: 63 }), { doc: 'Labels.' })

const service = object(
  {
    type: optional(
      enumeration(['LoadBalancer', 'ClusterIP', 'NodePort'], { doc: 'Type.', default: 'LoadBalancer' }),
    ),
    annotations: optional(annotations),
    labels: optional(labels),
    loadBalancerClass: optional(name({ doc: 'Implementation of the load balancer.' }, maxName)),
    externalTrafficPolicy: optional(
      enumeration(['Cluster', 'Local'], {
        doc: '`Local` preserves addresses of clients.',
        default: 'Cluster',
      }),
    ),
  },
  { doc: 'Service of the proxies.' },
)

const countOrPercentage = (doc: string) =>
  anyOfShapes([integer({ doc: 'Number.' }, { min: 0 }), string({ doc: 'Percentage.' })], {
    doc,
    example: '50%',
  })

const horizontalPodAutoscaler = object(
  {
    minReplicas: optional(integer({ doc: 'Lower bound.', default: 1 }, { min: 1, max: maxReplicas })),
    maxReplicas: integer({ doc: 'Upper bound.' }, { min: 1, max: maxReplicas }),
    targetCPUUtilizationPercentage: optional(
      integer(
        { doc: 'Target of CPU usage, in percent of the request.', default: 80 },
        { min: 1, max: 1_000 },
      ),
    ),
    metrics: optional(
      list(
        jsonObject({ doc: 'A metric of HorizontalPodAutoscaler v2.' }),
        { doc: 'Metrics in place of CPU usage.' },
        { min: 1, max: 16 },
      ),
    ),
    behavior: optional(jsonObject({ doc: '`behavior` of HorizontalPodAutoscaler v2.' })),
  },
  { doc: 'Creates a HorizontalPodAutoscaler for the proxies.' },
)

const podDisruptionBudget = exactlyOne(
  {
    minAvailable: countOrPercentage('Number of proxies that a disruption must leave.'),
    maxUnavailable: countOrPercentage('Number of proxies that a disruption may end.'),
  },
  {},
  { doc: 'Creates a PodDisruptionBudget for the proxies.' },
)

const metadata = object(
  { labels: optional(labels), annotations: optional(annotations) },
  { doc: 'Labels and annotations.' },
)

const overlay = (doc: string) =>
  object(
    {
      metadata: optional(metadata),
      spec: optional(
        jsonObject({ doc: 'Fields of `spec`, merged by the rules of strategic merge patches.' }),
      ),
    },
    { doc },
  )

const overlays = object(
  {
    deployment: optional(overlay('Deployment.')),
    podTemplate: optional(overlay('Template of the Pods.')),
    service: optional(overlay('Service.')),
    serviceAccount: optional(object({ metadata: optional(metadata) }, { doc: 'ServiceAccount.' })),
    horizontalPodAutoscaler: optional(overlay('HorizontalPodAutoscaler.')),
    podDisruptionBudget: optional(overlay('PodDisruptionBudget.')),
  },
  { doc: 'Changes of generated objects, after all other fields.' },
)

const shutdown = object(
  {
    min: optional(duration({ doc: 'Time for load balancers to remove a proxy that ends.', default: '10s' })),
    max: optional(duration({ doc: 'Time until a proxy that ends is killed.', default: '60s' })),
  },
  { doc: 'Shutdown of a proxy.' },
)

/** `spec` of a GatewayParameters. */
export const gatewayParametersSpec = object(
  {
    env: optional(list(environmentVariable, { doc: 'Environment variables of the proxies.' }, { max: 256 })),
    image: optional(image),
    resources: optional(resources),
    replicas: optional(
      integer(
        { doc: 'Number of proxies; without effect beside `horizontalPodAutoscaler`.', default: 1 },
        { min: 0, max: maxReplicas },
      ),
    ),
    service: optional(service),
    horizontalPodAutoscaler: optional(horizontalPodAutoscaler),
    podDisruptionBudget: optional(podDisruptionBudget),
    shutdown: optional(shutdown),
    overlays: optional(overlays),
  },
  { doc: 'Deployment of the proxies of a Gateway or of all Gateways of a class.' },
)

export type GatewayParametersSpec = Infer<typeof gatewayParametersSpec>
export type GatewayParameters = ObjectOf<'GatewayParameters', GatewayParametersSpec, ConditionsStatus>
