import { integer, jsonObject, list, name, openObject, optional, string } from '../../../schema/dsl.ts'
import {
  maxPort,
  objectReference,
  optionalList,
  optionalText,
  optionalTexts,
  portNumber,
  textMap,
} from './fields.ts'

// Schemas of `spec`, Gateway API v1.6, standard channel, reduced to the fields read here. Enumerations are
// plain strings: later versions add values, which are reported as not supported.

const parametersRef = openObject(
  {
    group: string({ doc: 'API group.' }),
    kind: string({ doc: 'Kind.' }),
    name: name({ doc: 'Name.' }),
    namespace: optionalText('Namespace.'),
  },
  { doc: 'Reference to parameters.' },
)

export const gatewayClassSpec = openObject(
  {
    controllerName: name({ doc: 'Controller of the class.' }),
    parametersRef: optional(parametersRef),
    description: optionalText('Description.'),
  },
  { doc: 'Class of Gateways.' },
)

export const labelSelector = openObject(
  {
    matchLabels: optional(textMap('Labels with their values.')),
    matchExpressions: optionalList(
      openObject(
        {
          key: string({ doc: 'Label.' }),
          operator: string({ doc: 'Operator.' }),
          values: optionalTexts('Values.'),
        },
        { doc: 'Condition on a label.' },
      ),
      'Conditions on labels.',
    ),
  },
  { doc: 'Selection by labels.' },
)

export const gatewayListener = openObject(
  {
    name: name({ doc: 'Name.' }),
    hostname: optionalText('Host of the requests.'),
    port: portNumber('Port.'),
    protocol: name({ doc: 'Protocol.' }),
    tls: optional(
      openObject(
        {
          mode: optionalText('Terminate or Passthrough.'),
          certificateRefs: optionalList(objectReference, 'Secrets with certificates.'),
          options: optional(textMap('Options.')),
        },
        { doc: 'TLS.' },
      ),
    ),
    allowedRoutes: optional(
      openObject(
        {
          namespaces: optional(
            openObject(
              { from: optionalText('All, Selector, Same or None.'), selector: optional(labelSelector) },
              { doc: 'Namespaces of routes.' },
            ),
          ),
          kinds: optionalList(
            openObject(
              { group: optionalText('API group.'), kind: name({ doc: 'Kind.' }) },
              { doc: 'Kind of routes.' },
            ),
            'Kinds of routes.',
          ),
        },
        { doc: 'Routes that may attach.' },
      ),
    ),
  },
  { doc: 'Listener.' },
)

export const frontendValidation = openObject(
  {
    caCertificateRefs: optionalList(objectReference, 'Certificates of authorities.'),
    /** `AllowValidOnly` or `AllowInsecureFallback`. */
    mode: optionalText('Mode.'),
  },
  { doc: 'Validation of certificates of clients.' },
)

const frontendTls = openObject({ validation: optional(frontendValidation) }, { doc: 'TLS of clients.' })

const gatewayTls = openObject(
  {
    /** Client certificate of the gateway towards backends. */
    backend: optional(
      openObject({ clientCertificateRef: optional(objectReference) }, { doc: 'TLS towards backends.' }),
    ),
    frontend: optional(
      openObject(
        {
          default: optional(frontendTls),
          perPort: optionalList(
            openObject(
              { port: integer({ doc: 'Port.' }, { min: 1, max: maxPort }), tls: frontendTls },
              { doc: 'TLS of a port.' },
            ),
            'TLS by port.',
          ),
        },
        { doc: 'TLS of clients.' },
      ),
    ),
  },
  { doc: 'TLS of all listeners.' },
)

export const gatewaySpec = openObject(
  {
    gatewayClassName: name({ doc: 'Class.' }),
    listeners: list(gatewayListener, { doc: 'Listeners.' }),
    addresses: optionalList(
      openObject({ type: optionalText('Type.'), value: optionalText('Value.') }, { doc: 'Address.' }),
      'Addresses.',
    ),
    infrastructure: optional(
      openObject(
        {
          labels: optional(textMap('Labels of created objects.')),
          annotations: optional(textMap('Annotations of created objects.')),
          parametersRef: optional(
            openObject(
              {
                group: string({ doc: 'API group.' }),
                kind: string({ doc: 'Kind.' }),
                name: name({ doc: 'Name.' }),
              },
              { doc: 'Reference to parameters.' },
            ),
          ),
        },
        { doc: 'Deployment.' },
      ),
    ),
    tls: optional(gatewayTls),
    allowedListeners: optional(jsonObject({ doc: 'Not supported.' })),
  },
  { doc: 'Gateway.' },
)

export const referenceGrantSpec = openObject(
  {
    from: list(
      openObject(
        {
          group: string({ doc: 'API group.' }),
          kind: name({ doc: 'Kind.' }),
          namespace: name({ doc: 'Namespace.' }),
        },
        { doc: 'Origin of references.' },
      ),
      { doc: 'Origins of references.' },
    ),
    to: list(
      openObject(
        {
          group: string({ doc: 'API group.' }),
          kind: name({ doc: 'Kind.' }),
          name: optionalText('Name; without it all objects.'),
        },
        { doc: 'Destination of references.' },
      ),
      { doc: 'Destinations of references.' },
    ),
  },
  { doc: 'Permitted references from other namespaces.' },
)

export const backendTlsPolicySpec = openObject(
  {
    targetRefs: list(
      openObject(
        {
          group: string({ doc: 'API group.' }),
          kind: name({ doc: 'Kind.' }),
          name: name({ doc: 'Name.' }),
          sectionName: optionalText('Name of a port.'),
        },
        { doc: 'Target.' },
      ),
      { doc: 'Targets.' },
    ),
    validation: openObject(
      {
        caCertificateRefs: optionalList(objectReference, 'Certificates of authorities.'),
        wellKnownCACertificates: optionalText('System.'),
        hostname: name({ doc: 'Server name.' }),
        subjectAltNames: optionalList(
          openObject(
            {
              type: string({ doc: 'Hostname or URI.' }),
              hostname: optionalText('Host.'),
              uri: optionalText('URI.'),
            },
            { doc: 'Name in the certificate.' },
          ),
          'Names in the certificate.',
        ),
      },
      { doc: 'Validation of certificates of backends.' },
    ),
    options: optional(textMap('Options.')),
  },
  { doc: 'TLS towards Services.' },
)
