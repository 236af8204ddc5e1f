import { anyOfShapes, integer, map, openObject, optional, secret, string } from '../../../schema/dsl.ts'
import {
  optionalFlag,
  optionalList,
  optionalNumber,
  optionalText,
  optionalTexts,
  portNumber,
  textMap,
} from './fields.ts'

// Schemas of Kubernetes' own kinds, reduced to the fields read here.

export const servicePort = openObject(
  {
    name: optionalText('Name.'),
    port: portNumber('Port.'),
    protocol: optionalText('TCP, UDP or SCTP.'),
    appProtocol: optionalText('Application protocol.'),
    targetPort: optional(
      anyOfShapes([integer({ doc: 'Port.' }), string({ doc: 'Name of a port.' })], {
        doc: 'Port of the Pods.',
      }),
    ),
  },
  { doc: 'Port of a Service.' },
)

export const serviceSpec = openObject(
  {
    type: optionalText('Type.'),
    externalName: optionalText('Host of type ExternalName.'),
    clusterIP: optionalText('Address; None without one.'),
    clusterIPs: optionalTexts('Addresses.'),
    /** `IPv4` or `IPv6`, the preferred family first. */
    ipFamilies: optionalTexts('Families of the addresses.'),
    ports: optionalList(servicePort, 'Ports.'),
    selector: optional(textMap('Labels of the Pods.')),
  },
  { doc: 'Service.' },
)

export const endpoint = openObject(
  {
    addresses: optionalTexts('Addresses.'),
    /** Undefined values count as ready, as in the API. */
    conditions: optional(
      openObject(
        {
          ready: optionalFlag('Accepts connections.'),
          serving: optionalFlag('Serves requests.'),
          terminating: optionalFlag('Terminates.'),
        },
        { doc: 'Conditions.' },
      ),
    ),
  },
  { doc: 'Endpoint.' },
)

export const endpointPort = openObject(
  {
    name: optionalText('Name.'),
    port: optionalNumber('Port.', { min: 0, max: 65_535 }),
    protocol: optionalText('TCP, UDP or SCTP.'),
    appProtocol: optionalText('Application protocol.'),
  },
  { doc: 'Port of endpoints.' },
)

export const endpointSliceContent = openObject(
  {
    /** `IPv4`, `IPv6` or `FQDN`. */
    addressType: optionalText('Type of the addresses.'),
    endpoints: optionalList(endpoint, 'Endpoints.'),
    ports: optionalList(endpointPort, 'Ports.'),
  },
  { doc: 'Endpoints of a Service.' },
)

const secretMap = map(secret({ doc: 'Value.' }), { doc: 'Values.', secret: true })

export const secretContent = openObject(
  {
    type: optionalText('Type.'),
    /** Values are base64. */
    data: optional(secretMap),
    /** In manifests only: plain text that takes precedence over `data`. */
    stringData: optional(secretMap),
  },
  { doc: 'Secret.' },
)

export const configMapContent = openObject({ data: optional(secretMap) }, { doc: 'Texts.' })

export const namespaceContent = openObject({}, { doc: 'Namespace.' })
