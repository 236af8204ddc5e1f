/** Name of the controller in GatewayClasses and statuses. */
export const controllerName = 'tollgate.dev/controller'
