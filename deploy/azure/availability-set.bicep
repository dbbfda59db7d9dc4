// Three VMs in an availability set, each with a replica of allclear: db-0, db-1 and db-2 at 10.0.0.4, .5 and .6.
// README.md describes the steps, and a test with a real reboot.

@description('The address of the Debian package for cloud-init, for example of a blob. The VMs must reach it.')
param packageUri string

@description('The SHA-256 of the package, in hexadecimal.')
@minLength(64)
@maxLength(64)
param packageSha256 string

@description('The public key for your login.')
param sshPublicKey string

@description('The source of your login, for example 203.0.113.7/32. Empty: no login, and no VM has a public address.')
param operatorAddress string = ''

param location string = resourceGroup().location
param vmSize string = 'Standard_B2s'
param userName string = 'operator'

var count = 3
var names = [for i in range(0, count): 'db-${i}']
var addresses = [for i in range(0, count): '10.0.0.${i + 4}']
var replicas = join(map(range(0, count), i => '${names[i]} = "${addresses[i]}:7420"'), ', ')
var template = loadTextContent('cloud-init.yaml')
var cloudInit = replace(replace(replace(template, '@@REPLICAS@@', replicas), '@@PACKAGE@@', packageUri), '@@SHA256@@', packageSha256)
var hasOperator = !empty(operatorAddress)

resource securityGroup 'Microsoft.Network/networkSecurityGroups@2023-11-01' = {
  name: 'db'
  location: location
  properties: {
    securityRules: concat([
      {
        name: 'replicas'
        properties: {
          priority: 100
          direction: 'Inbound'
          access: 'Allow'
          protocol: 'Tcp'
          sourceAddressPrefix: '10.0.0.0/29'
          sourcePortRange: '*'
          destinationAddressPrefix: '10.0.0.0/29'
          destinationPortRange: '7420'
        }
      }
      {
        name: 'nobody-else'
        properties: {
          priority: 110
          direction: 'Inbound'
          access: 'Deny'
          protocol: '*'
          sourceAddressPrefix: 'VirtualNetwork'
          sourcePortRange: '*'
          destinationAddressPrefix: '*'
          destinationPortRange: '7420-7421'
        }
      }
    ], hasOperator ? [
      {
        name: 'operator'
        properties: {
          priority: 120
          direction: 'Inbound'
          access: 'Allow'
          protocol: 'Tcp'
          sourceAddressPrefix: operatorAddress
          sourcePortRange: '*'
          destinationAddressPrefix: '*'
          destinationPortRange: '22'
        }
      }
    ] : [])
  }
}

resource network 'Microsoft.Network/virtualNetworks@2023-11-01' = {
  name: 'db'
  location: location
  properties: {
    addressSpace: {
      addressPrefixes: ['10.0.0.0/24']
    }
    subnets: [
      {
        name: 'db'
        properties: {
          addressPrefix: '10.0.0.0/29'
          networkSecurityGroup: {
            id: securityGroup.id
          }
        }
      }
    ]
  }
}

// One approval counts for every VM of the event, and each VM receives the events of the whole set.
resource availabilitySet 'Microsoft.Compute/availabilitySets@2025-04-01' = {
  name: 'db'
  location: location
  sku: {
    name: 'Aligned'
  }
  properties: {
    platformFaultDomainCount: 2
    platformUpdateDomainCount: 3
    // Azure itself approves nothing: an event that starts before the hooks have run costs writes.
    scheduledEventsPolicy: {
      userInitiatedReboot: {
        automaticallyApprove: false
      }
      userInitiatedRedeploy: {
        automaticallyApprove: false
      }
      allInstancesDown: {
        automaticallyApprove: false
      }
    }
  }
}

resource publicAddresses 'Microsoft.Network/publicIPAddresses@2023-11-01' = [for i in range(0, hasOperator ? count : 0): {
  name: names[i]
  location: location
  sku: {
    name: 'Standard'
  }
  properties: {
    publicIPAllocationMethod: 'Static'
  }
}]

resource interfaces 'Microsoft.Network/networkInterfaces@2023-11-01' = [for i in range(0, count): {
  name: names[i]
  location: location
  properties: {
    ipConfigurations: [
      {
        name: 'db'
        properties: {
          privateIPAllocationMethod: 'Static'
          privateIPAddress: addresses[i]
          subnet: {
            id: network.properties.subnets[0].id
          }
          publicIPAddress: hasOperator ? {
            id: resourceId('Microsoft.Network/publicIPAddresses', names[i])
          } : null
        }
      }
    ]
  }
  dependsOn: [publicAddresses]
}]

resource machines 'Microsoft.Compute/virtualMachines@2024-03-01' = [for i in range(0, count): {
  name: names[i]
  location: location
  properties: {
    availabilitySet: {
      id: availabilitySet.id
    }
    hardwareProfile: {
      vmSize: vmSize
    }
    osProfile: {
      computerName: names[i]
      adminUsername: userName
      customData: base64(cloudInit)
      linuxConfiguration: {
        disablePasswordAuthentication: true
        ssh: {
          publicKeys: [
            {
              path: '/home/${userName}/.ssh/authorized_keys'
              keyData: sshPublicKey
            }
          ]
        }
      }
    }
    storageProfile: {
      imageReference: {
        publisher: 'Debian'
        offer: 'debian-12'
        sku: '12-gen2'
        version: 'latest'
      }
      osDisk: {
        createOption: 'FromImage'
        managedDisk: {
          storageAccountType: 'StandardSSD_LRS'
        }
      }
    }
    networkProfile: {
      networkInterfaces: [
        {
          id: interfaces[i].id
        }
      ]
    }
  }
}]

output machineNames array = names
output loginAddresses array = [for i in range(0, hasOperator ? count : 0): publicAddresses[i].properties.ipAddress]
