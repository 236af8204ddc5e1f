import { anyOfShapes, list, name, type Schema } from './dsl.ts'

/** Gateways that something attaches to: `name` or `name/listener`, one or several. */
export const gatewayReferences: Schema<string | string[]> = anyOfShapes(
  [
    name({ doc: 'A gateway, or one of its listeners as `<gateway>/<listener>`.' }),
    list(
      name({ doc: 'A gateway, or one of its listeners as `<gateway>/<listener>`.' }),
      { doc: 'Several of them.' },
      { min: 1 },
    ),
  ],
  {
    doc: 'Gateways this is served at: `<gateway>` or `<gateway>/<listener>`, one or a list.',
    example: 'default',
    default: 'the gateway named default',
  },
)
