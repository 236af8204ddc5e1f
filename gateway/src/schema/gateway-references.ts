import { anyOfShapes, list, name, type Schema } from './dsl.ts'

/** References to gateways or their listeners: `name` or `name/listener`, one or several. */
export const gatewayReferences: Schema<string | string[]> = anyOfShapes(
  [
    name({ doc: 'A gateway, or one of its listeners as `<gateway>/<listener>`.' }),
    list(
      name({ doc: 'A gateway, or one of its listeners as `<gateway>/<listener>`.' }),
      { doc: 'Several gateways or listeners.' },
      { min: 1 },
    ),
  ],
  {
    doc: 'Gateways that serve this entry: `<gateway>` or `<gateway>/<listener>`, one or a list.',
    example: 'default',
    default: 'the gateway named default',
  },
)
