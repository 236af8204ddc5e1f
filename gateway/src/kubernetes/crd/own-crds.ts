import { renderSections } from '../../config/config-reference.ts'
import { formatYaml } from '../../config/yaml/yaml.ts'
import { reservedVariables } from '../deployer/parameters.ts'
import { ownGroup } from '../objects/kinds.ts'
import { gatewayBackendSpec } from '../own-kinds/gateway-backend.ts'
import { gatewayParametersSpec } from '../own-kinds/gateway-parameters.ts'
import { gatewayPolicySpec } from '../own-kinds/gateway-policy/gateway-policy.ts'
import { type Column, type CrdOptions, type CustomResourceDefinition, crdVersion, createCrd } from './crd.ts'
import { conditionsStatus, policyStatus } from './status-schema.ts'

function condition(type: string, description: string, conditions = '.status.conditions'): Column {
  return { name: type, path: `${conditions}[?(@.type=="${type}")].status`, description }
}

const ofAncestor = '.status.ancestors[0].conditions'

const ownKinds: readonly CrdOptions[] = [
  {
    kind: 'GatewayPolicy',
    plural: 'gatewaypolicies',
    shortName: 'tgpol',
    // Direct policy attachment (GEP-713, GEP-2648).
    labels: { 'gateway.networking.k8s.io/policy': 'Direct' },
    spec: gatewayPolicySpec,
    status: policyStatus,
    rules: [
      {
        rule: "!has(self.frontend) || self.targetRefs.all(t, t.kind == 'Gateway' && !has(t.sectionName))",
        message: 'frontend requires Gateways without sectionName as targets',
      },
    ],
    columns: [
      { name: 'Target', path: '.spec.targetRefs[0].name', description: 'First target.' },
      condition('Accepted', 'Whether the policy is valid.', ofAncestor),
      condition('Attached', 'Whether the policy has an effect.', ofAncestor),
      condition('ResolvedRefs', 'Whether all references are resolved.', ofAncestor),
    ],
  },
  {
    kind: 'GatewayParameters',
    plural: 'gatewayparameters',
    shortName: 'tgparams',
    spec: gatewayParametersSpec,
    status: conditionsStatus,
    keys: { env: 'name' },
    rules: [
      {
        rule: `!has(self.env) || self.env.all(e, !(e.name in [${reservedVariables.map((name) => `'${name}'`).join(', ')}]))`,
        message: `env must not contain variables that the controller sets: ${reservedVariables.join(', ')}`,
      },
    ],
    columns: [condition('Accepted', 'Whether the parameters are valid.')],
  },
  {
    kind: 'GatewayBackend',
    plural: 'gatewaybackends',
    shortName: 'tgbe',
    spec: gatewayBackendSpec,
    status: conditionsStatus,
    columns: [
      condition('Accepted', 'Whether the backend is valid.'),
      condition('ResolvedRefs', 'Whether all references are resolved.'),
    ],
  },
]

/** Creates the definitions of the gateway's own kinds. */
export function ownCrds(): readonly CustomResourceDefinition[] {
  return ownKinds.map(createCrd)
}

/** A definition as YAML. */
export function crdYaml(crd: CustomResourceDefinition): string {
  return `${generated}${formatYaml(crd)}`
}

const generated = '# Generated from the schemas by `npm run docs`.\n'

/** Renders the reference of the own kinds in Markdown: a section for each object of their `spec`. */
export function renderKubernetesReference(): string {
  const kinds = ownKinds.flatMap(({ kind, plural, shortName, spec }) => [
    `## ${kind}`,
    `\`apiVersion: ${ownGroup}/${crdVersion}\`. Names for \`kubectl\`: \`${plural}\`, \`${shortName}\`.`,
    ...renderSections(spec, { path: 'spec', level: '###' }),
  ])
  return `${[
    '# Reference of the Kubernetes kinds',
    '<!-- Generated from the schema by `npm run docs`. -->',
    'Fields marked * are required. `[]` stands for any item of a list and `<name>` for any key. Durations are written `500ms`, ' +
      '`10s` or `1h30m`. The API server refuses unknown fields and values that violate these types; the controller reports ' +
      'mistakes that need more context in the conditions of the object.',
    ...kinds,
  ].join('\n\n')}\n`
}
