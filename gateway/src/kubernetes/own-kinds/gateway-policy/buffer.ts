import { type Infer, object, optional } from '../../../schema/dsl.ts'
import { byteSizeSchema } from '../byte-size.ts'
import { clusterEnumeration } from '../enumerations.ts'

const body = (doc: string, status: number) =>
  optional(
    object(
      {
        maxBytes: optional(
          byteSizeSchema({ doc: 'Limit of the body.', default: '`frontend.http.maxBufferSize`' }),
        ),
        failureMode: optional(
          clusterEnumeration(['failClosed', 'failOpen'], {
            doc: `Larger bodies: \`FailClosed\` answers ${status}, \`FailOpen\` streams them.`,
            default: 'FailClosed',
          }),
        ),
      },
      { doc },
    ),
  )

/** `traffic.buffer`. */
export const bufferSchema = object(
  {
    request: body('Requests are forwarded after their body has arrived.', 413),
    response: body('Responses are sent after their body has arrived, event streams too.', 502),
  },
  { doc: 'Reads complete bodies before they are forwarded.' },
)

export type Buffer = Infer<typeof bufferSchema>
