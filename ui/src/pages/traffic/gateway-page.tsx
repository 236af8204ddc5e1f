import { useParams } from 'wouter'
import { isObject } from '../../schema-form/model/value.ts'
import { ResourceEditor } from '../resources/resource-editor.tsx'
import { OpenListeners } from './listeners/open-listeners.tsx'

/** One gateway: its open listeners, port, TLS, listeners and policies. */
export default function GatewayPage() {
  const { id = '' } = useParams()
  const isNew = id === 'new'
  return (
    <ResourceEditor
      key={id}
      kind="traffic.gateway"
      id={isNew ? undefined : id}
      noun="gateway"
      path="/traffic/gateways"
      about="A port with its protocol, certificates, listeners by host, and the policies of everything behind it."
      initial={isNew ? { name: '', port: 8080 } : undefined}
      before={({ record }) => {
        const name = isObject(record?.value) ? record.value['name'] : undefined
        return typeof name === 'string' ? <OpenListeners gateway={name} /> : null
      }}
    />
  )
}
