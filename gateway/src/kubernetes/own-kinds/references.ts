import { enumeration, integer, name, object, optional } from '../../schema/dsl.ts'
import { ownGroup } from '../objects/kinds.ts'

const namespace = optional(
  name({ doc: 'Namespace; another one requires a ReferenceGrant.', default: 'that of the referrer' }),
)

/** Schema of a reference to a Service or a GatewayBackend. */
export function backendReferenceSchema(doc: string) {
  return object(
    {
      group: optional(
        enumeration(['', ownGroup], { doc: 'Group, empty for a Service.', default: 'the empty group' }),
      ),
      kind: optional(enumeration(['Service', 'GatewayBackend'], { doc: 'Kind.', default: 'Service' })),
      name: name({ doc: 'Name.' }),
      namespace,
      port: optional(
        integer({ doc: 'Port of the Service; required for Services.' }, { min: 1, max: 65_535 }),
      ),
    },
    { doc },
  )
}

/** Schema of a reference to a Secret as a whole. */
export function secretReferenceSchema(doc: string) {
  return object({ name: name({ doc: 'Name of the Secret.' }), namespace }, { doc })
}

/** Schema of a reference to an entry of a Secret. */
export function secretEntrySchema(doc: string, { key }: { key: string }) {
  return object(
    {
      name: name({ doc: 'Name of the Secret.' }),
      namespace,
      key: optional(name({ doc: 'Entry of the Secret.', default: key })),
    },
    { doc },
  )
}

/** Schema of a reference to a ConfigMap or Secret with certificate authorities. */
export const authoritiesReferenceSchema = object(
  {
    kind: optional(
      enumeration(['ConfigMap', 'Secret'], { doc: 'Kind of the object.', default: 'ConfigMap' }),
    ),
    name: name({ doc: 'Name of the object, in the namespace of the referrer. Its entry is `ca.crt`.' }),
  },
  { doc: 'PEM certificates of authorities.' },
)
